"""The first half of a script with a method of its own in ``__main__``, as a notebook has it; see test_shared_ray.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch

import raysim
from raysim.config.run_config import Engine, Schedule
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Context, Message, Traits, Update, Updates
from workloads.federated_data import ClientData
from workloads.option_types import Ge, Help


@dataclasses.dataclass(frozen=True)
class Server:
    parameters: np.ndarray
    rounds: int = 0


@dataclasses.dataclass(frozen=True)
class Damped:
    """FedAvg that goes a part of the way, with a state and an option of types that are known to this script only."""

    share: Annotated[float, Ge(0), Help("part of the mean update")] = 0.5
    judged: Literal["all", "own"] = "all"

    traits: ClassVar[Traits] = Traits(weighted_mean=True)

    def shared_names(self, module: torch.nn.Module) -> Sequence[str]:
        return [name for name, _ in module.named_parameters()]

    def init_server(self, model: FlatModel) -> Server:
        return Server(model.take_shared())

    def init_client(self, model: FlatModel) -> None:
        return None

    def message(self, server: Server, client: int) -> Message:
        return Message(server.parameters)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import train_epochs

        model.load_shared(message.parameters)
        trained = train_epochs(model, data.train, task)
        return Update(model.change_from(message.parameters), trained.metrics()), None

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        step = updates.mean() * np.float32(self.share)
        return dataclasses.replace(server, parameters=server.parameters + step, rounds=server.rounds + 1)

    def deploy(self, model: FlatModel, message: Message, kept: None) -> None:
        model.load_shared(message.parameters)


def run_damped(backend: Literal["ray", "inline"], output: str) -> None:
    usual = raysim.default_config("fedavg", model="mlp")
    raysim.run(
        dataclasses.replace(
            usual,
            method=Damped(),
            workload=dataclasses.replace(usual.workload, clients=4, limit=200),
            schedule=Schedule(rounds=2, local_epochs=1),
            engine=Engine(backend=backend, actors=2, dashboard=False),
            pictures=False,
            output=output,
        )
    )
