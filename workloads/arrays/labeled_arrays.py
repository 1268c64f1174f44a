"""From labeled arrays, whose real clients may be known, to a federation that is split as options say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.splits.partition import Integers
from raysim.workloads.splits.split_options import Labeled, SplitOptions


@dataclass(frozen=True, eq=False)
class Part:
    """Training or test samples: inputs [N, ...], labels int64 [N] and the real client of each, if known."""

    inputs: NDArray[Any]
    labels: Integers
    sites: NDArray[np.str_] | None = None

    def at(self, rows: Integers) -> Part:
        """Some of the samples."""
        return Part(self.inputs[rows], self.labels[rows], None if self.sites is None else self.sites[rows])


def federation_of(  # noqa: PLR0913 - the fields of the federation that it makes
    options: SplitOptions,
    stream: Stream,
    name: str,
    train: Part,
    test: Part,
    class_names: tuple[str, ...],
    vocabulary: int = 0,
    notes: tuple[str, ...] = (),
    synthetic: bool = False,
    **more: Any,
) -> ArrayFederation:
    """The federation. WorkloadError, which names the data, if it cannot be split as asked.

    Args:
        more: what :class:`Labeled` holds beside labels and sites.
    """
    labeled = Labeled(train.labels, len(test.labels), train.sites, test.sites if len(test.labels) else None, **more)
    try:
        split = options.split(labeled, stream)
    except WorkloadError as error:
        raise WorkloadError(f"{name}: {error}") from error
    return ArrayFederation(
        name=name,
        inputs=train.inputs,
        labels=train.labels,
        test_inputs=test.inputs,
        test_labels=test.labels,
        **vars(split),
        class_names=class_names,
        vocabulary=vocabulary,
        notes=notes,
        synthetic=synthetic,
    )
