"""A federation of image files that are decoded when they are first used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workloads.array_federation import SplitFederation
from workloads.augmentation import NO_AUGMENTATION, Augmentation
from workloads.federated_data import Batch, InputSpec, Samples
from workloads.images.decoded_cache import CHANNELS, ImageCache
from workloads.partition import Integers

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """One folder's images and the label of each, int64 [N]."""

    cache: ImageCache
    labels: Integers


@dataclass(frozen=True, eq=False, kw_only=True)
class FileFederation(SplitFederation):
    """Names, labels and, per client, indices; no pixels.

    An image may belong to several clients. ``mean`` and ``deviation`` (float32 [C], of x / 255) normalize all images;
    they are given, as computing them would decode everything.
    """

    train_files: ImageFiles
    test_files: ImageFiles
    global_rows: Integers
    """The global test set, of ``test_files``."""
    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]
    augment: Augmentation

    @property
    def global_test_size(self) -> int:
        return len(self.global_rows)

    def task(self, client: int) -> InputSpec:
        size = self.train_files.cache.size
        return InputSpec((CHANNELS, size, size), len(self.class_names))

    def _training_labels(self) -> Integers:
        return self.train_files.labels

    def _training_samples(self, client: int, device: str, channels_last: bool) -> FileSamples:
        return self._samples(self.train_files, self.train.of(client), device, self.augment, channels_last)

    def _held_out(self, rows: Integers, of_tests: bool, device: str, channels_last: bool) -> FileSamples:
        files = self.test_files if of_tests else self.train_files
        return self._samples(files, rows, device, NO_AUGMENTATION, channels_last)

    def global_test(self, start: int, stop: int, device: str) -> FileSamples:
        return self._samples(self.test_files, self.global_rows[start:stop], device)

    def _samples(
        self,
        files: ImageFiles,
        rows: Integers,
        device: str,
        augment: Augmentation = NO_AUGMENTATION,
        channels_last: bool = True,
    ) -> FileSamples:
        def decoded() -> Samples:
            from workloads.images.samples import ImageSamples

            images, labels = files.cache.images(rows), files.labels[rows]
            return ImageSamples(images, labels, self.mean, self.deviation, device, augment, rows, channels_last)

        return FileSamples(len(rows), decoded)


class FileSamples:
    """Some images of a folder, decoded (those that the cache lacks) when they are first walked over."""

    def __init__(self, count: int, decoded: Callable[[], Samples]) -> None:
        self._count, self._decoded = count, functools.cache(decoded)

    def __len__(self) -> int:
        return self._count

    def batches(self, batch_size: int, generator: torch.Generator | None = None) -> Iterator[Batch]:
        return self._decoded().batches(batch_size, generator)
