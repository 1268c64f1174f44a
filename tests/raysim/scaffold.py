"""SCAFFOLD on clients whose loss is ½(w − t)²: small enough for numbers by hand, and importable by Ray's processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from raysim.method import Message, Traits, Update
from raysim.methods import scaffold
from raysim.training.local_sgd import train_epochs
from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.given.arrays import gather
from raysim.workloads.given.given_data import GivenData
from raysim.workloads.option_types import Help

SAMPLES = (2, 4, 6, 4)
TARGETS = (0, 4, 8, 16)


@dataclass(frozen=True)
class Points:
    """Four clients; the samples of client i are all labeled with its target t_i. Nobody has a test sample."""

    name: ClassVar[str] = "points"

    def load(self, stream: Any) -> ArrayFederation:
        clients = [
            (np.zeros((samples, 1), np.float32), np.full(samples, target))
            for samples, target in zip(SAMPLES, TARGETS, strict=True)
        ]
        return GivenData(classes=max(TARGETS) + 1).holding(gather(clients, None)).load(stream)


class Weight(torch.nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.classes = classes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight.expand(len(x), self.classes)


@dataclass(frozen=True)
class OneWeight:
    name: ClassVar[str] = "one-weight"

    def build(self, task: Any) -> Weight:
        return Weight(task.classes)


@dataclass(frozen=True)
class Scaffold(scaffold.Scaffold):
    """The registered method with a loss for numbers by hand, which also reports all that a method knows of a cohort."""

    union: Annotated[bool, Help("train on the union of all clients' data")] = False

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        return Traits(pooled=self.union)

    def train(self, model: Any, data: Any, message: Message, state: np.ndarray, task: Any) -> Any:
        model.load_shared(message.parameters)
        control = message.extra["control"]
        correction = torch.from_numpy(control - state)
        trained = train_epochs(
            model,
            data.train,
            task,
            lambda module, batch: 0.5 * (module.get_parameter("weight") - batch.y).square().mean(),
            add_gradient=lambda model: model.gradient.add_(correction),
        )
        delta = model.change_from(message.parameters)
        after = state - control - delta / np.float32(trained.steps * task.learning_rate)
        cohort = task.cohort
        metrics = trained.metrics() | {
            "share": cohort.share(data.samples),
            "share_of_cohort": cohort.share_of_cohort(data.samples),
            "rate": cohort.rate,
        }
        return Update(delta, metrics, {"control": after - state}), after

    def aggregate(self, server: scaffold.Server, updates: Any, context: Any) -> scaffold.Server:
        server = super().aggregate(server, updates, context)
        cohort = context.cohort
        context.report.round("weight", float(server.parameters[0]))
        context.report.round("control", float(server.control[0]))
        for name in ("size", "samples", "present", "present_samples", "existing"):
            context.report.round(f"cohort_{name}", getattr(cohort, name))
        context.report.clients("server_share", cohort.share(updates.samples))
        context.report.clients("server_share_of_cohort", cohort.share_of_cohort(updates.samples))
        return server


FOUR_ROUNDS = {
    "method.name": "tests.raysim.scaffold:Scaffold",
    "workload.name": "tests.raysim.scaffold:Points",
    "model.name": "tests.raysim.scaffold:OneWeight",
    "schedule.rounds": 4,
    "schedule.local_epochs": 1,
    "schedule.sampling_rate": 0.5,
    "training.learning_rate": 0.5,
}
"""A run of four rounds of one step of size ½ each, at sampling rate ½."""
