"""Small models, client tasks and updates, made of plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from raysim.config.sections import Training
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Context, Update, Updates
from raysim.workloads.arrays.array_samples import ArraySamples
from raysim.workloads.batch_bounds import LastBatch
from raysim.workloads.federated_data import Batch, ClientData


class InOrder:
    """Given mini-batches, in the same order in every epoch; it says how often it was gone through."""

    def __init__(self, *given: Batch) -> None:
        self.given, self.passes = given, 0

    def __len__(self) -> int:
        return sum(map(len, self.given))

    def batches(
        self, batch_size: int, generator: torch.Generator | None = None, last: LastBatch | None = None
    ) -> Iterator[Batch]:
        self.passes += 1
        yield from self.given


def linear(method: Any) -> FlatModel:
    """Logits (w0, w1) x of one number x; both weights are 0."""
    module = torch.nn.Linear(1, 2, bias=False)
    module.weight.data.zero_()
    return FlatModel(module, method.shared_names(module))


def sigmoid(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def one_sample(epochs: int, **training: Any) -> tuple[ClientTask, ClientData]:
    """Client 1, with the input 1 and the label 0; an epoch is a step."""
    samples = ArraySamples(np.ones((1, 1), np.float32), np.zeros(1, np.int64), "cpu")
    task = ClientTask(0, 2, 1, epochs, 0.5, Training(learning_rate=0.5, **training), classes=2)
    return task, ClientData(1, "one", samples, samples)


def updates(
    deltas: Iterable[Any], samples: Sequence[int], clients: Sequence[int] = (), **metrics: Sequence[float]
) -> Updates:
    """Updates of clients, by default of 0, 1, …, with the metrics of each."""
    each = tuple(
        Update(np.array(delta, np.float32), {name: values[row] for name, values in metrics.items()})
        for row, delta in enumerate(deltas)
    )
    return Updates(tuple(clients or range(len(each))), np.array(samples), each)


def context(parameters: int = 2, **options: Any) -> Context:
    """Round 1 of 50; of a vector the leading ``parameters`` entries are parameters."""
    given: dict[str, Any] = {"seed": 0, "round": 1, "rounds": 50, "learning_rate": 0.1}
    return Context(**given | {"shared_parameter_count": parameters} | options)
