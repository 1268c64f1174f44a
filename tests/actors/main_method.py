"""The first half of a script with a method of its own in ``__main__``, as a notebook has it; see test_shared_ray.py."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

import raysim
from raysim.config.run_config import Engine, Schedule
from raysim.flat_model import FlatModel
from raysim.method import Context, Message, Traits, Updates
from raysim.methods.fedavg import FedAvg
from raysim.workloads.option_types import Ge, Help


@dataclasses.dataclass(frozen=True)
class Server:
    parameters: np.ndarray
    rounds: int = 0


@dataclasses.dataclass(frozen=True)
class Damped(FedAvg):
    """FedAvg that goes a part of the way, with a state and an option of types that are known to this script only."""

    share: Annotated[float, Ge(0), Help("part of the mean update")] = 0.5
    judged: Literal["all", "own"] = "all"

    traits: ClassVar[Traits] = Traits(weighted_mean=True)

    def init_server(self, model: FlatModel) -> Any:
        return Server(model.take_shared())

    def message(self, server: Any, client: int) -> Message:
        return Message(server.parameters)

    def aggregate(self, server: Any, updates: Updates, context: Context) -> Any:
        step = updates.mean() * np.float32(self.share)
        return dataclasses.replace(server, parameters=server.parameters + step, rounds=server.rounds + 1)


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
