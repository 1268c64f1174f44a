"""A federation of image files that are decoded when they are first used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workloads.augmentation import NO_AUGMENTATION, Augmentation
from workloads.federated_data import NO_SAMPLES, Batch, ClientData, Samples, Task
from workloads.images.decoded_cache import CHANNELS, ImageCache
from workloads.partition import Common, Integers, Partition
from workloads.partition_report import client_table

if TYPE_CHECKING:
    import pandas
    import torch


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """One folder's images and the label of each, int64 [N]."""

    cache: ImageCache
    labels: Integers


@dataclass(frozen=True, eq=False)
class FileFederation:
    """Names, labels and, per client, indices; no pixels.

    `train` and `validation` point into `train_files`, `local_test` into `test_files` if `local_test_is_global`, else
    into `train_files`, `global_rows` into `test_files`. An image may belong to several clients. `mean` and `deviation`
    (float32 [C], of x / 255) normalise all images; they are given, as computing them would decode everything.
    """

    name: str
    class_names: tuple[str, ...]
    client_names: NDArray[np.str_]
    train_files: ImageFiles
    test_files: ImageFiles
    train: Partition
    local_test: Partition | Common
    local_test_is_global: bool
    validation: Partition | None
    global_rows: Integers
    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]
    augment: Augmentation

    @property
    def synthetic(self) -> bool:
        return False

    @property
    def clients(self) -> int:
        return self.train.clients

    @property
    def global_test_size(self) -> int:
        return len(self.global_rows)

    def task(self, client: int) -> Task:
        size = self.train_files.cache.size
        return Task((CHANNELS, size, size), len(self.class_names))

    def samples(self, client: int) -> int:
        return self.train.size(client)

    def total_samples(self, clients: int) -> int:
        return self.train.total(clients)

    def test_samples(self, client: int) -> int:
        return self.local_test.size(client)

    def client_name(self, client: int) -> str:
        return str(self.client_names[client]) if len(self.client_names) else f"client {client}"

    def client(self, client: int, device: str, channels_last: bool = True) -> ClientData:
        """Decodes nothing yet: each part does when it is first walked over."""
        tests = self.test_files if self.local_test_is_global else self.train_files
        return ClientData(
            client=client,
            name=self.client_name(client),
            train=self._samples(self.train_files, self.train.of(client), device, self.augment, channels_last),
            test=self._samples(tests, self.local_test.of(client), device, NO_AUGMENTATION, channels_last),
            validation=self._samples(
                self.train_files, self.validation.of(client), device, NO_AUGMENTATION, channels_last
            )
            if self.validation
            else NO_SAMPLES,
        )

    def global_test(self, start: int, stop: int, device: str) -> FileSamples:
        return self._samples(self.test_files, self.global_rows[start:stop], device)

    def pooled(self) -> FileFederation:
        """An image of several clients is in it as often; with a global local test, each test image once."""
        return replace(
            self,
            client_names=np.array(["all clients"]),
            train=self.train.pooled(),
            local_test=self.local_test.pooled(),
            validation=self.validation.pooled() if self.validation else None,
        )

    def manifest(self) -> pandas.DataFrame:
        table = client_table(
            self,
            [self.client_name(client) for client in range(self.clients)],
            self.train.owners,
            self.train_files.labels[self.train.indices],
            np.zeros(self.clients, dtype=np.int64),
        )
        if self.validation:
            table["validation_samples"] = self.validation.sizes
        return table

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
