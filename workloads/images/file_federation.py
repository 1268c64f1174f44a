"""A federation of image files that are decoded when they are first used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.arrays.array_federation import SplitFederation
from raysim.workloads.batch_bounds import LastBatch
from raysim.workloads.federated_data import Batch, InputSpec, Samples
from raysim.workloads.images.augmentation import NO_AUGMENTATION, Augmentation
from raysim.workloads.images.decoded_cache import CHANNELS, ImageCache
from raysim.workloads.splits.partition import Integers

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False, kw_only=True)
class FileFederation(SplitFederation):
    """Names, labels and, per client, indices; no pixels.

    An image may belong to several clients. ``mean`` and ``deviation`` (float32 [C], of x / 255) normalize all images;
    they are given, as computing them would decode everything.
    """

    images: ImageCache
    test_images: ImageCache
    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]
    augment: Augmentation

    def input_spec(self, client: int) -> InputSpec:
        return InputSpec((CHANNELS, self.images.size, self.images.size), len(self.class_names))

    def _training_samples(self, client: int, device: str, channels_last: bool) -> FileSamples:
        return self._samples(self.train.of(client), False, device, channels_last, self.augment)

    def _held_out(self, rows: Integers, of_tests: bool, device: str, channels_last: bool) -> FileSamples:
        return self._samples(rows, of_tests, device, channels_last, NO_AUGMENTATION)

    def _samples(
        self, rows: Integers, of_tests: bool, device: str, channels_last: bool, augment: Augmentation
    ) -> FileSamples:
        cache, labels = (self.test_images, self.test_labels) if of_tests else (self.images, self.labels)

        def decoded() -> Samples:
            from raysim.workloads.images.samples import ImageSamples

            images = cache.images(rows)
            return ImageSamples(images, labels[rows], self.mean, self.deviation, device, augment, rows, channels_last)

        return FileSamples(len(rows), decoded)


class FileSamples:
    """Some images of a folder, decoded (those that the cache lacks) when they are first walked over."""

    def __init__(self, count: int, decoded: Callable[[], Samples]) -> None:
        self._count, self._decoded = count, functools.cache(decoded)

    def __len__(self) -> int:
        return self._count

    def batches(
        self, batch_size: int, generator: torch.Generator | None = None, last: LastBatch | None = None
    ) -> Iterator[Batch]:
        return self._decoded().batches(batch_size, generator, last)
