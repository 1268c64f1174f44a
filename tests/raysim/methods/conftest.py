"""Small in-process runs on digits, and single visits without a run, for the tests of methods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raysim.config.run_config import RunConfig, build
from raysim.engine.client_task import kept_globals, seed_globals
from raysim.engine.worker import Worker
from raysim.method import Message, Update
from raysim.simulation import load_federation
from raysim.training.local_sgd import Visit
from workloads.parallel_map import sequential

MakeConfig = Callable[..., RunConfig]


@pytest.fixture
def make_config(tmp_path: Path) -> MakeConfig:
    """A run of three short rounds in this process; options over it as flat paths, with __ for a dot."""

    def make(name: str, **options: Any) -> RunConfig:
        base: dict[str, Any] = {
            "method.name": "fedavg",
            "model.name": "mlp",
            "workload.clients": 5,
            "schedule.rounds": 3,
            "training.steps_per_epoch": 3,
            "engine.backend": "inline",
            "output": str(tmp_path / name),
        }
        return build([base | {key.replace("__", "."): value for key, value in options.items()}])

    return make


class Visits:
    """A worker, and visits of its clients as a round would make them."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.method = config.method
        self.worker = Worker(config, load_federation(config, sequential))

    def visit(self, client: int, local_epochs: int = 1) -> Visit:
        classes = self.worker.federation.task(client).classes
        return Visit(0, 1, client, local_epochs, 0.05, self.config.training, classes)

    def train(self, client: int, message: Message, kept: Any = None, local_epochs: int = 1) -> tuple[Update, Any]:
        model, data = self.worker.model(client), self.worker.data(client)
        visit = self.visit(client, local_epochs)
        with kept_globals():
            seed_globals(visit)
            result: tuple[Update, Any] = self.method.train(model, data, message, kept, visit)
        return result


@pytest.fixture
def make_visits(make_config: MakeConfig) -> Callable[..., Visits]:
    return lambda **options: Visits(make_config("visits", **options))
