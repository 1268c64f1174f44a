"""Samples of one client as tensors on its device: rows of an array of inputs and their labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from raysim.workloads.batch_bounds import LastBatch, bounds_of_pass
from raysim.workloads.federated_data import Batch

WHOLE_SET_BYTES = 64 * 2**20
"""Up to this size, inputs are converted once instead of in each epoch."""


class ArraySamples:
    """Inputs [N, ...] and labels [N, ...], both owned by the caller's copy, handed out in mini-batches.

    A batch is memory of its own: a model or a loss that writes to it changes no sample.
    Numbers with a fraction come as float32, all others (tokens, categories, bytes) as int64, inputs and labels alike.
    With ``rows`` the inputs are a large array, mapped from a file say, of which sample j is ``inputs[rows[j]]``: they
    stay where they are, and each batch alone is copied and brought to the device.

    A class of other inputs, such as images, overrides ``_converted``, and where they are varied at random in training
    ``_varied`` and ``varies``.
    """

    varies = False
    """Whether inputs are varied at random in training, so that none of them is converted once for all."""

    def __init__(
        self, inputs: NDArray[Any], labels: NDArray[Any], device: str, rows: NDArray[np.int64] | None = None
    ) -> None:
        self._rows = None if rows is None else torch.from_numpy(rows.copy())
        self._raw = _read_only(inputs) if rows is not None else torch.from_numpy(inputs).to(device)
        self._labels = usual_type(torch.from_numpy(labels)).to(device)
        self._whole: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self._labels)

    def batches(
        self, batch_size: int, generator: torch.Generator | None = None, last: LastBatch | None = None
    ) -> Iterator[Batch]:
        """One pass over the samples: in order, or with a generator a shuffled training epoch."""
        small = self._rows is None and 4 * self._raw.numel() <= WHOLE_SET_BYTES
        if small and not self.varies and self._whole is None:
            with torch.inference_mode(False):  # kept: a tensor made while evaluating could never be trained on
                self._whole = self._converted(self._raw)
            self._raw = torch.empty(0, dtype=torch.uint8)  # no longer needed
        bounds = bounds_of_pass(len(self), batch_size, generator is not None, last)
        if generator is None:
            for start, stop in bounds:
                yield self._batch(slice(start, stop))
            return
        if bounds == [(0, len(self))] and self._whole is not None:
            # All samples make one batch: in which order changes nothing but the rounding of their sums.
            yield self._batch(slice(None))
            return
        order = torch.randperm(len(self), generator=generator, device=generator.device).to(self._labels.device)
        for start, stop in bounds:
            yield self._batch(order[start:stop], generator)

    def _batch(self, chosen: slice | torch.Tensor, generator: torch.Generator | None = None) -> Batch:
        if self._whole is not None:
            return Batch(self._shown(_copy(self._whole, chosen)), _copy(self._labels, chosen))
        raw = self._chosen(chosen)
        if self.varies and generator is not None:
            raw = self._varied(raw, generator)
        return Batch(self._shown(self._converted(raw)), _copy(self._labels, chosen))

    def _chosen(self, chosen: slice | torch.Tensor) -> torch.Tensor:
        """Inputs as they are stored, on the device."""
        if self._rows is None:
            return _copy(self._raw, chosen)
        rows = self._rows[chosen if isinstance(chosen, slice) else chosen.cpu()]
        return self._raw[rows].to(self._labels.device)

    def _converted(self, raw: torch.Tensor) -> torch.Tensor:
        """Samples for the model. Elementwise, so that a batch has the same bits as its part of the whole set."""
        return usual_type(raw)

    def _varied(self, raw: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """A training batch, varied at random before it is converted."""
        raise NotImplementedError

    def _shown(self, converted: torch.Tensor) -> torch.Tensor:
        """A view of converted inputs, with the axes in the order that the model takes."""
        return converted


def usual_type(values: torch.Tensor) -> torch.Tensor:
    """As float32 if they are numbers with a fraction, else as int64; the tensor itself if it is that already."""
    return values.to(torch.float32 if values.is_floating_point() else torch.int64)


def _copy(values: torch.Tensor, chosen: slice | torch.Tensor) -> torch.Tensor:
    """The chosen rows, in memory of their own."""
    rows = values[chosen]
    return rows.clone() if isinstance(chosen, slice) else rows


def _read_only(inputs: NDArray[Any]) -> torch.Tensor:
    """A tensor over the same memory, out of which batches are copied."""
    if inputs.flags.writeable:
        return torch.from_numpy(inputs)
    with warnings.catch_warnings():  # torch's, that writing to it would be undefined
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(inputs)
