"""Test sets of what comes in order of time: the end of each group of samples, without overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.splits.partition import Integers, Partition, from_owners, ranks


@dataclass(frozen=True, eq=False)
class Recordings:
    """Samples that are windows of recordings, each recording that of one real client and its windows in order of time.

    Args:
        of: recording of each sample, [N] of numbers or names.
        overlap: number of windows that overlap with the one that follows them.
    """

    of: NDArray[Any]
    overlap: int

    def cut_ends(self, whole: Partition, share: float) -> tuple[Partition, Partition]:
        """(rest, ends): of each client's samples the last ``share`` of each recording, by :func:`hold_out_ends`.

        Args:
            whole: clients that have whole recordings, or the beginnings of these.
        """
        rest, ends = hold_out_ends(self.of[whole.indices], share, self.overlap)
        owners, clients, indices = whole.owners, whole.clients, whole.indices
        return from_owners(owners[rest], clients, indices[rest]), from_owners(owners[ends], clients, indices[ends])


def hold_out_ends(groups: NDArray[Any], share: float, gap: int) -> tuple[Integers, Integers]:
    """(training, test): positions of the samples; the last ``share`` (rounded) of each group is for the test.

    The ``gap`` samples before them overlap with them, and are in neither. At least one sample of a group is tested, and
    one trained on; a group of one sample, or of which the gap would be half or more, is for training alone, as all are
    for a share of 0.

    Args:
        groups: group of each sample, [N] of numbers or names; the samples of a group are in order of time.
        share: of a group's samples.
        gap: number of samples that overlap with the one that follows them.
    """
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    rank = ranks(group, len(sizes), np.arange(len(groups)))
    wanted = np.maximum(np.floor(sizes * share + 0.5).astype(np.int64), 1)
    enough = sizes >= max(2, 2 * gap + 1)
    tests = np.where(enough, np.minimum(wanted, sizes - gap - 1), 0) if share else np.zeros_like(sizes)
    first = (sizes - tests)[group]
    tested: NDArray[np.bool_] = rank >= first
    trained = rank < np.where(tests > 0, sizes - tests - gap, sizes)[group]
    return np.flatnonzero(trained), np.flatnonzero(tested)
