"""The samples of a workload, in one .npz file that all systems read, and the local epoch of those without their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rounds.task import WORKLOADS, Workload

if TYPE_CHECKING:
    import torch

TEST_SAMPLES = 2000


def make(workload: Workload, path: Path) -> None:
    """Write the file; this needs raysim's data sets."""
    from benchmarks.rounds.samples import MAKERS

    partial = path.with_suffix(".partial.npz")
    content: dict[str, Any] = MAKERS[workload.kind](workload)
    np.savez(partial, **content)
    partial.replace(path)


@dataclass(frozen=True)
class Arrays:
    """All samples: inputs [N, ...] and their classes [N]."""

    inputs: NDArray[Any]
    """Images, normalized by the training images' mean and deviation: float32 [N, 3, 32, 32]; characters: int64 [N, 80];
    graphs: their numbers, int64 [N]."""
    labels: NDArray[np.int64]
    test_inputs: NDArray[Any]
    test_labels: NDArray[np.int64]
    samples: int
    """Samples of each client: client c has the c-th run of as many samples."""
    graphs: list[Any] = field(default_factory=list)
    """PyTorch Geometric's ``Data`` by number."""

    def client(self, index: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        own = slice(index * self.samples, (index + 1) * self.samples)
        return self.inputs[own], self.labels[own]

    def batch(self, inputs: torch.Tensor) -> Any:
        """The inputs of a mini-batch as the model takes them."""
        if not self.graphs:
            return inputs
        from torch_geometric.data import Batch

        return Batch.from_data_list([self.graphs[number] for number in inputs.tolist()])


def load(path: str, workload: str) -> Arrays:
    """Read the file."""
    settings = WORKLOADS[workload]
    with np.load(path) as file:
        if settings.kind == "images":
            return _images(file, settings.samples)
        labels, test_labels = file["train_labels"], file["test_labels"]
        if settings.kind == "characters":
            train, test = (file[f"{part}_characters"].astype(np.int64) for part in ("train", "test"))
            return Arrays(train, labels, test, test_labels, settings.samples)
        numbers = np.arange(len(labels) + len(test_labels))
        train, test = numbers[: len(labels)], numbers[len(labels) :]
        return Arrays(train, labels, test, test_labels, settings.samples, _graphs(file))


def _images(file: Any, samples: int) -> Arrays:
    train, test = file["train_images"], file["test_images"]
    mean = (train.mean(axis=(0, 1, 2)) / 255).astype(np.float32)
    deviation = (train.std(axis=(0, 1, 2)) / 255).astype(np.float32)

    def normalized(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        floats = images.astype(np.float32)
        floats /= 255
        floats -= mean
        floats /= deviation
        return np.ascontiguousarray(floats.transpose(0, 3, 1, 2))

    return Arrays(normalized(train), file["train_labels"], normalized(test), file["test_labels"], samples)


def _graphs(file: Any) -> list[Any]:
    import torch
    from torch_geometric.data import Data

    features = torch.from_numpy(file["features"])
    edges = torch.from_numpy(file["edge_index"])
    nodes = np.split(np.arange(len(features)), file["node_offsets"][1:-1])
    pairs = np.split(np.arange(edges.shape[1]), file["edge_offsets"][1:-1])
    labels = np.concatenate([file["train_labels"], file["test_labels"]])
    return [
        Data(x=features[own[0] : own[-1] + 1], edge_index=edges[:, ends], y=torch.tensor([label]))
        for own, ends, label in zip(nodes, pairs, labels.tolist(), strict=True)
    ]


def train_epoch(module: Any, arrays: Arrays, client: int, settings: Workload) -> None:
    """One local epoch as anybody would write it: shuffled mini-batches, images plain NCHW float32."""
    import torch

    inputs, labels = map(torch.from_numpy, arrays.client(client))
    optimizer = torch.optim.SGD(module.parameters(), lr=settings.learning_rate)
    module.train()
    for chosen in torch.split(torch.randperm(len(labels)), settings.batch_size):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(arrays.batch(inputs[chosen])), labels[chosen]).backward()
        optimizer.step()


def accuracy(module: Any, arrays: Arrays) -> float:
    """On the test samples."""
    import torch

    module.eval()
    correct = 0
    with torch.inference_mode():
        for start in range(0, len(arrays.test_labels), 500):
            scores = module(arrays.batch(torch.from_numpy(arrays.test_inputs[start : start + 500])))
            labels = torch.from_numpy(arrays.test_labels[start : start + 500])
            correct += int((scores.argmax(dim=1) == labels).sum())
    return correct / len(arrays.test_labels)
