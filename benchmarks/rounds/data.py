"""The samples: raysim's synthetic images of CIFAR's shape, made once into an .npz file that every system reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rounds.task import BATCH_SIZE, WORKLOADS, Workload

if TYPE_CHECKING:
    import torch

TEST_SAMPLES = 2000


def make(workload: Workload, path: Path) -> None:
    """Write the file: MedMNIST's keys, and the client of each training sample as its site."""
    from raysim.workloads.images.synthetic import Synthetic

    size = workload.clients * workload.samples
    options = Synthetic(train_size=size, test_size=TEST_SAMPLES, noise=workload.noise)
    images = options.images(lambda _: np.random.default_rng(0))
    partial = path.with_suffix(".partial.npz")
    np.savez(
        partial,
        train_images=images.images,
        train_labels=images.labels,
        train_sites=np.array([f"client {index // workload.samples:04}" for index in range(size)]),
        test_images=images.test_images,
        test_labels=images.test_labels,
        test_sites=np.full(TEST_SAMPLES, "no client"),
    )
    partial.replace(path)


@dataclass(frozen=True)
class Arrays:
    """All samples, images normalized by the training images' mean and deviation: float32 [N, 3, 32, 32]."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]
    test_images: NDArray[np.float32]
    test_labels: NDArray[np.int64]
    samples: int
    """Of each client: client c has the c-th run of as many samples."""

    def client(self, index: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        own = slice(index * self.samples, (index + 1) * self.samples)
        return self.images[own], self.labels[own]


def load(path: str, workload: str) -> Arrays:
    with np.load(path) as file:
        train, test = file["train_images"], file["test_images"]
        labels, test_labels = file["train_labels"], file["test_labels"]
    mean = (train.mean(axis=(0, 1, 2)) / 255).astype(np.float32)
    deviation = (train.std(axis=(0, 1, 2)) / 255).astype(np.float32)

    def normalized(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        floats = images.astype(np.float32)
        floats /= 255
        floats -= mean
        floats /= deviation
        return np.ascontiguousarray(floats.transpose(0, 3, 1, 2))

    return Arrays(normalized(train), labels, normalized(test), test_labels, WORKLOADS[workload].samples)


def train_epoch(module: Any, optimizer: Any, images: torch.Tensor, labels: torch.Tensor) -> None:
    """One local epoch as anybody would write it: shuffled mini-batches, plain NCHW float32."""
    import torch

    module.train()
    for chosen in torch.split(torch.randperm(len(labels)), BATCH_SIZE):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(images[chosen]), labels[chosen]).backward()
        optimizer.step()


def accuracy(module: Any, arrays: Arrays) -> float:
    """On the test samples."""
    import torch

    module.eval()
    correct = 0
    with torch.inference_mode():
        for start in range(0, len(arrays.test_labels), 500):
            scores = module(torch.from_numpy(arrays.test_images[start : start + 500]))
            labels = torch.from_numpy(arrays.test_labels[start : start + 500])
            correct += int((scores.argmax(dim=1) == labels).sum())
    return correct / len(arrays.test_labels)
