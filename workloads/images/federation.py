"""The federation of an image set: numpy arrays that every process of a node shares, and clients as indices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.images.augmentation import NO_AUGMENTATION, Augmentation
from raysim.workloads.images.augmented_fill import Fill
from raysim.workloads.splits.partition import Integers

if TYPE_CHECKING:
    from raysim.workloads.images.samples import ImageSamples


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageFederation(ArrayFederation):
    """Images uint8 [N, H, W, C] and labels int64 [N] once, and per client the indices of its parts.

    ``fill`` points into the training images. ``mean`` and ``deviation`` (float32 [C], of x / 255) normalize all images.
    """

    fill: Fill | None
    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]
    augment: Augmentation

    def input_spec(self, client: int) -> InputSpec:
        height, width, channels = self.inputs.shape[1:]
        return InputSpec((channels, height, width), len(self.class_names) or self.outputs)

    @property
    def whole_numbers(self) -> bool:
        return False

    def samples(self, client: int) -> int:
        return super().samples(client) + len(self._copied(client))

    def total_samples(self, clients: int) -> int:
        return super().total_samples(clients) + (self.fill.sources.total(clients) if self.fill else 0)

    def pooled(self) -> Self:
        fill = replace(self.fill, sources=self.fill.sources.pooled()) if self.fill else None
        return replace(super().pooled(), fill=fill)

    def _training_samples(self, client: int, device: str, channels_last: bool) -> ImageSamples:
        own = self.train.of(client)
        images, labels = self.inputs[own], self.labels[own]
        if self.fill:
            images = np.concatenate([images, self.fill.copies(self.inputs, client)])
            labels = np.concatenate([labels, self.labels[self._copied(client)]])
        return self._samples(images, labels, device, channels_last, augment=self.augment)

    def _copied(self, client: int) -> Integers:
        return self.fill.sources.of(client) if self.fill else super()._copied(client)

    def _samples(
        self,
        inputs: NDArray[Any],
        labels: NDArray[Any],
        device: str,
        channels_last: bool = True,
        rows: Integers | None = None,
        augment: Augmentation = NO_AUGMENTATION,
    ) -> ImageSamples:
        from raysim.workloads.images.samples import ImageSamples

        return ImageSamples(inputs, labels, self.mean, self.deviation, device, augment, rows, channels_last)


def channel_statistics(images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(mean, standard deviation) of each channel of images / 255, float32 [C], over all training images.

    They come from exact counts, so that they do not depend on the order of summation. A channel that is constant
    gets deviation 1.
    """
    channels = images.shape[3]
    counts = np.zeros((channels, 256), dtype=np.int64)
    for start in range(0, len(images), 4096):  # bincount widens its input to int64: eight times the memory
        for channel in range(channels):
            counts[channel] += np.bincount(images[start : start + 4096, :, :, channel].reshape(-1), minlength=256)
    values = np.arange(256) / 255
    shares = counts / counts.sum(axis=1, keepdims=True)
    mean = shares @ values
    deviation = np.sqrt((shares * (values - mean[:, None]) ** 2).sum(axis=1))
    return mean.astype(np.float32), np.where(deviation > 0, deviation, 1.0).astype(np.float32)
