"""A method and a model as a user would bring them, each with a fault to choose. Copied to ``mine.py`` by the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Context, Message, Method, Update, Updates, Vector
from raysim.methods.fedavg import FedAvg
from raysim.methods.local import Local
from raysim.workloads.federated_data import ClientData, Federation, InputSpec
from raysim.workloads.option_types import Help


@dataclass(frozen=True)
class Broken(FedAvg):
    """FedAvg whose function ``where`` fails: train and aggregate in ``round``, train for client 2 only."""

    where: Annotated[str, Help("which function fails")] = "train"
    round: Annotated[int, Help("in which round")] = 2

    def message(self, server: Vector, client: int) -> Message:
        self.fail("message")
        return super().message(server, client)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        if task.client == 2 and task.round == self.round:
            self.fail("train")
        return super().train(model, data, message, state, task)

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        if context.round == self.round:
            self.fail("aggregate")
            if self.where == "overflow":
                return server * float("inf")
        return super().aggregate(server, updates, context)

    def deploy(self, model: FlatModel, message: Message, state: None) -> None:
        self.fail("deploy")
        super().deploy(model, message, state)

    def fail(self, where: str) -> None:
        if where == self.where:
            raise ZeroDivisionError("a mistake of mine")


@dataclass(frozen=True)
class BadState(Local):
    """What client 1 keeps is not finite, though its model and update are."""

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        update, state = super().train(model, data, message, state, task)
        return update, state * np.float32("nan") if task.client == 1 else state


@dataclass(frozen=True)
class WithBatchNorm:
    name: ClassVar[str] = "with-batch-norm"

    def build(self, inputs: InputSpec) -> torch.nn.Module:
        from math import prod

        from raysim.workloads.models.classifier import Classifier

        size = prod(inputs.input_shape)
        return Classifier(
            torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(size)), torch.nn.Linear(size, inputs.classes)
        )


@dataclass(frozen=True)
class Waiting(FedAvg):
    """From a round on every client task waits until a file exists."""

    gate: Annotated[str, Help("the file; {} stands for the round")] = ""
    first: Annotated[int, Help("the round")] = 3

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        _wait(self.gate, self.first, task.round)
        return super().train(model, data, message, state, task)


@dataclass(frozen=True)
class WaitingLocal(Local):
    """The same where clients keep their models."""

    gate: Annotated[str, Help("the file; {} stands for the round")] = ""
    first: Annotated[int, Help("the round")] = 3

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        _wait(self.gate, self.first, task.round)
        return super().train(model, data, message, state, task)


def _wait(gate: str, first: int, round: int) -> None:
    import time
    from pathlib import Path

    while round >= first and not Path(gate.format(round)).exists():
        time.sleep(0.02)


@dataclass(frozen=True)
class OtherState(FedAvg):
    """FedAvg whose ``aggregate`` returns something else than ``init_server`` did."""

    kind: Annotated[str, Help("float64, shape or dict")] = "float64"

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Any:
        found = super().aggregate(server, updates, context)
        if self.kind == "float64":
            return found.astype("float64")
        return found[1:] if self.kind == "shape" else {"parameters": found}


@dataclass(frozen=True)
class Empty:
    """Nothing of a method, a workload or a model."""


@dataclass(frozen=True)
class NoTraits(FedAvg):
    """FedAvg's functions, and nothing declared."""

    traits = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Misnamed(FedAvg):
    """A slip of the pen in a name."""

    aggregate = None  # type: ignore[assignment]

    def agregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        return server


@dataclass(frozen=True)
class Declares(Method[Any, None]):
    """Four functions that the contract only declares, and no one has written."""

    traits = FedAvg.traits

    def shared_names(self, module: torch.nn.Module) -> Sequence[str]:
        return ()

    def init_server(self, model: FlatModel) -> Any:
        return None

    def init_client(self, model: FlatModel) -> None:
        return None


@dataclass(frozen=True)
class Unsketched:
    """A workload that says nothing before it is loaded; one of its clients has no test sample."""

    def load(self, stream: Callable[[str], np.random.Generator]) -> Federation:
        from raysim.workloads.images.digits import Digits
        from raysim.workloads.images.image_set import ImageSet

        labels = np.arange(40) % 2
        sites = np.array(["crowd"] * 20 + ["lonely"] * 20)
        images = ImageSet(
            "mine", np.zeros((40, 8, 8, 1), np.uint8), labels, np.zeros((4, 8, 8, 1), np.uint8), labels[:4],
            ("0", "1"), sites, np.array(["crowd"] * 4),
        )  # fmt: skip
        unknown = np.zeros(1, np.float32)
        return Digits(partition="sites")._federation(images, stream, unknown, unknown + 1)
