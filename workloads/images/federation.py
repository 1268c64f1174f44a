"""The federation of an image set: numpy arrays that every process of a node shares, and clients as indices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workloads.augmentation import NO_AUGMENTATION, Augmentation
from workloads.augmented_fill import Fill
from workloads.federated_data import NO_SAMPLES, ClientData, Samples, Task
from workloads.partition import Common, Integers, Partition
from workloads.partition_report import client_table
from workloads.virtual_clients import Views

if TYPE_CHECKING:
    import pandas

    from workloads.images.samples import ImageSamples


@dataclass(frozen=True, eq=False)
class ImageFederation:
    """Images uint8 [N, H, W, C] and labels int64 [N] once, and per client the indices of its parts.

    The arrays may be read-only (shared memory): nothing here writes to them, and what a client needs is copied.
    `local_test` points into the test images if `local_test_is_global`, else into the training images; `train`,
    `validation` and `fill` always point into the training images. `mean` and `deviation` (float32 [C], of x / 255)
    normalise all images.
    """

    name: str
    synthetic: bool
    class_names: tuple[str, ...]
    client_names: NDArray[np.str_]
    images: NDArray[np.uint8]
    labels: Integers
    test_images: NDArray[np.uint8]
    test_labels: Integers
    train: Partition | Views
    local_test: Partition | Views | Common
    local_test_is_global: bool
    validation: Partition | Views | None
    fill: Fill | None
    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]
    augment: Augmentation

    @property
    def clients(self) -> int:
        return self.train.clients

    @property
    def global_test_size(self) -> int:
        return len(self.test_labels)

    def task(self, client: int) -> Task:
        height, width, channels = self.images.shape[1:]
        return Task((channels, height, width), len(self.class_names))

    def samples(self, client: int) -> int:
        return self.train.size(client) + (self.fill.size(client) if self.fill else 0)

    def total_samples(self, clients: int) -> int:
        return self.train.total(clients) + (self.fill.total(clients) if self.fill else 0)

    def test_samples(self, client: int) -> int:
        return self.local_test.size(client)

    def client_name(self, client: int) -> str:
        return str(self.client_names[client]) if len(self.client_names) else f"client {client}"

    def client(self, client: int, device: str, channels_last: bool = True) -> ClientData:
        own = self.train.of(client)
        images, labels = self.images[own], self.labels[own]
        if self.fill:
            images = np.concatenate([images, self.fill.copies(self.images, client)])
            labels = np.concatenate([labels, self.labels[self.fill.sources_of(client)]])
        return ClientData(
            client=client,
            name=self.client_name(client),
            train=self._samples(images, labels, device, self.augment, channels_last),
            test=self._local_test(client, device, channels_last),
            validation=self._validation(client, device, channels_last),
        )

    def _local_test(self, client: int, device: str, channels_last: bool) -> ImageSamples:
        tested = self.local_test.of(client)
        if not self.local_test_is_global:
            return self._samples(self.images[tested], self.labels[tested], device, NO_AUGMENTATION, channels_last)
        # Where they are: a copy for every client could be many times the test set.
        labels = self.test_labels[tested]
        return self._samples(self.test_images, labels, device, NO_AUGMENTATION, channels_last, rows=tested)

    def _validation(self, client: int, device: str, channels_last: bool) -> Samples:
        if self.validation is None:
            return NO_SAMPLES
        own = self.validation.of(client)
        return self._samples(self.images[own], self.labels[own], device, NO_AUGMENTATION, channels_last)

    def global_test(self, start: int, stop: int, device: str) -> ImageSamples:
        return self._samples(self.test_images[start:stop].copy(), self.test_labels[start:stop].copy(), device)

    def pooled(self) -> ImageFederation:
        return replace(
            self,
            client_names=np.array(["all clients"]),
            train=self.train.pooled(),
            local_test=self.local_test.pooled(),
            validation=self.validation.pooled() if self.validation else None,
            fill=self.fill.pooled() if self.fill else None,
        )

    def manifest(self) -> pandas.DataFrame:
        clients = range(self.clients)
        own = [self.train.of(client) for client in clients]
        copied = [self.fill.sources_of(client) if self.fill else own[client][:0] for client in clients]
        copies = np.array([len(sources) for sources in copied], dtype=np.int64)
        sizes = np.array([len(indices) for indices in own], dtype=np.int64)
        table = client_table(
            self,
            [self.client_name(client) for client in clients],
            np.concatenate([np.repeat(clients, sizes), np.repeat(clients, copies)]),
            self.labels[np.concatenate([*own, *copied])],
            copies,
        )
        if self.validation:
            table["validation_samples"] = [self.validation.size(client) for client in clients]
        return table

    def _samples(
        self,
        images: NDArray[np.uint8],
        labels: Integers,
        device: str,
        augment: Augmentation = NO_AUGMENTATION,
        channels_last: bool = True,
        rows: Integers | None = None,
    ) -> ImageSamples:
        from workloads.images.samples import ImageSamples

        return ImageSamples(
            images, labels, self.mean, self.deviation, device, augment, rows=rows, channels_last=channels_last
        )


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
