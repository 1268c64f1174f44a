"""Images of one client as tensors on its device."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from workloads.augment import augmented
from workloads.augmentation import NO_AUGMENTATION, Augmentation
from workloads.federated_data import Batch, batch_bounds

WHOLE_SET_BYTES = 64 * 2**20
"""Up to this size, images that are not augmented are converted to float32 once instead of in each epoch."""


class ImageSamples:
    """uint8 images [N, H, W, C] and labels [N], both owned by the caller's copy, handed out as normalised float32.

    With `rows` the images are a large array, mapped from a file say, of which sample j is `images[rows[j]]`: they
    stay where they are, and each batch alone is copied and brought to the device.

    Batches are [B, C, H, W] in torch.channels_last: a 5x5 convolution net trains faster so on a CPU even with one
    channel (measured on one core, forward and backward, batch 50: 1x8x8 1.6 against 2.3 ms, 1x28x28 22 against 27 ms,
    3x32x32 30 against 40 ms; MobileNetV2, batch 32: 63 against 91 ms). Without `channels_last` they are contiguous:
    a model without convolutions flattens them, which would copy each.
    """

    def __init__(
        self,
        images: NDArray[np.uint8],
        labels: NDArray[np.int64],
        mean: NDArray[np.float32],
        deviation: NDArray[np.float32],
        device: str,
        augment: Augmentation = NO_AUGMENTATION,
        rows: NDArray[np.int64] | None = None,
        channels_last: bool = True,
    ) -> None:
        self._channels_last = channels_last
        self._rows = None if rows is None else torch.from_numpy(rows.copy())
        self._bytes = _read_only(images) if rows is not None else torch.from_numpy(images).to(device)
        self._labels = torch.from_numpy(labels).to(device)
        self._mean = torch.tensor(mean, device=device)
        self._deviation = torch.tensor(deviation, device=device)
        self._augment = augment
        self._floats: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self._labels)

    def batches(self, batch_size: int, generator: torch.Generator | None = None) -> Iterator[Batch]:
        small = self._rows is None and 4 * self._bytes.numel() <= WHOLE_SET_BYTES
        if small and not self._augment and self._floats is None:
            with torch.inference_mode(False):  # kept: a tensor made while evaluating could never be trained on
                self._floats = self._normalise(self._bytes)
            self._bytes = torch.empty(0, dtype=torch.uint8)  # no longer needed
        bounds = batch_bounds(len(self), batch_size, training=generator is not None)
        if generator is None:
            for start, stop in bounds:
                yield self._batch(slice(start, stop))
            return
        if len(bounds) == 1 and self._floats is not None:
            # All samples make one batch: in which order changes nothing but the rounding of their sums.
            yield Batch(self._view(self._floats).detach(), self._labels)
            return
        order = torch.randperm(len(self), generator=generator, device=generator.device).to(self._labels.device)
        for start, stop in bounds:
            yield self._batch(order[start:stop], generator)

    def _batch(self, chosen: slice | torch.Tensor, generator: torch.Generator | None = None) -> Batch:
        if self._floats is not None:
            return Batch(self._view(self._floats[chosen]), self._labels[chosen])
        raw = self._chosen(chosen)
        if self._augment and generator is not None:
            # Before normalisation, so that the padding is black, and on bytes, a quarter of the memory.
            raw = augmented(raw.permute(0, 3, 1, 2), generator, self._augment).permute(0, 2, 3, 1)
        return Batch(self._view(self._normalise(raw)), self._labels[chosen])

    def _view(self, images: torch.Tensor) -> torch.Tensor:
        """[B, C, H, W], of what :meth:`_normalise` gives."""
        return images.permute(0, 3, 1, 2) if self._channels_last else images

    def _chosen(self, chosen: slice | torch.Tensor) -> torch.Tensor:
        """uint8 [B, H, W, C] on the device."""
        if self._rows is None:
            return self._bytes[chosen]
        rows = self._rows[chosen if isinstance(chosen, slice) else chosen.cpu()]
        return self._bytes[rows].to(self._labels.device)

    def _normalise(self, images: torch.Tensor) -> torch.Tensor:
        """[B, H, W, C] from bytes like it, or [B, C, H, W] if batches are not channels_last, contiguous.

        Elementwise, so that a batch has the same bits as its part of the whole set.
        """
        floats = images.to(torch.float32, memory_format=torch.contiguous_format)
        floats.div_(255).sub_(self._mean).div_(self._deviation)
        return floats if self._channels_last else floats.permute(0, 3, 1, 2).contiguous()


def _read_only(images: NDArray[np.uint8]) -> torch.Tensor:
    """A tensor over the same memory, out of which batches are copied."""
    if images.flags.writeable:
        return torch.from_numpy(images)
    with warnings.catch_warnings():  # torch's, that writing to it would be undefined
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(images)
