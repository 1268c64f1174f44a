"""q-FedAvg as its authors have it: server and clients of github.com/litian96/fair_flearn at f097971.

They take a model of any kind, a *learner*; this one is in torch, since theirs are for TensorFlow 1.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.agreement import problem
from benchmarks.agreement.case import Case, Change
from benchmarks.agreement.problem import Values

Weights = list[NDArray[np.float32]]
Data = Mapping[str, Any]


class Learner:
    """The network of the problem."""

    size, flops = 0, 0

    def __init__(self, *given: object) -> None:
        self._model = problem.network()

    def get_params(self) -> Weights:
        return [parameter.detach().numpy().copy() for parameter in self._model.parameters()]

    def set_params(self, values: Weights) -> None:
        for parameter, value in zip(self._model.parameters(), values, strict=True):
            parameter.data.copy_(torch.from_numpy(np.asarray(value, np.float32)))

    def get_loss(self, data: Data) -> float:
        with torch.no_grad():
            return float(self._loss(torch.stack(data["x"]), torch.stack(data["y"])))

    def solve_inner(self, data: Data, epochs: int, size: int) -> tuple[Weights, int]:
        optimizer = torch.optim.SGD(self._model.parameters(), problem.RATE)
        inputs, labels = torch.stack(data["x"]), torch.stack(data["y"])
        for _ in range(epochs):
            for batch in zip(inputs.split(size), labels.split(size), strict=True):
                optimizer.zero_grad()
                self._loss(*batch).backward()
                optimizer.step()
        return self.get_params(), 0

    def test(self, data: Data) -> tuple[int, float]:
        return 0, 0.0

    def close(self) -> None:
        return

    def _loss(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self._model(inputs), labels)


def cases(folder: Path) -> Iterator[Case]:
    """q-FedAvg with q = 2."""
    tensorflow: Any = ModuleType("tensorflow")
    tensorflow.train = SimpleNamespace(GradientDescentOptimizer=float)
    tensorflow.reset_default_graph = lambda: None
    sys.path.insert(0, str(folder))
    with mock.patch.dict(sys.modules, tensorflow=tensorflow):
        trainer: Any = importlib.import_module("flearn.trainers.qffedavg")

    def trained() -> Values:
        data = {number: {"x": [*x], "y": [*y]} for number, (x, y) in enumerate(problem.clients())}
        with TemporaryDirectory() as place:
            options = {
                "learning_rate": problem.RATE, "q": 2.0, "seed": 0, "model_params": (), "data_partition_seed": 0,
                "num_rounds": problem.ROUNDS - 1, "num_epochs": problem.EPOCHS, "batch_size": problem.BATCH,
                "clients_per_round": len(data), "sampling": 1, "eval_every": problem.ROUNDS,
                "log_interval": problem.ROUNDS, "output": f"{place}/accuracy",
            }  # fmt: skip
            server = trainer.Server(options, Learner, ([*data], [], data, data))
            server.select_clients = lambda **given: (np.arange(len(data)), np.array(server.clients))
            server.train()
        return {"server": torch.from_numpy(np.concatenate([value.ravel() for value in server.latest_model])).float()}

    def by_samples() -> AbstractContextManager[Any]:
        mix = trainer.Server.aggregate2

        def weighted(self: Any, before: Weights, changes: Sequence[Weights], steps: Sequence[float]) -> Weights:
            own = [[size * layer for layer in change] for size, change in zip(problem.SIZES, changes, strict=True)]
            found: Weights = mix(
                self, before, own, [size * step for size, step in zip(problem.SIZES, steps, strict=True)]
            )
            return found

        return mock.patch.object(trainer.Server, "aggregate2", weighted)

    change = Change("decision: clients, which are drawn uniformly, weigh by samples in both sums", by_samples)
    yield Case("qfedavg", trained, {"method.q": 2.0}, (change,))
