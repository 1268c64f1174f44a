"""Small in-process runs on digits, and single client tasks without a run, for the tests of methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from raysim.client_side.train_chunk import kept_globals, seed_globals
from raysim.config.run_config import RunConfig
from raysim.method import ClientTask, Message, Update, Vector
from tests.small_runs import MakeConfig, worker_of


@pytest.fixture
def base() -> dict[str, object]:
    """Three short rounds."""
    return {"workload.clients": 5, "model.name": "mlp", "schedule.rounds": 3, "training.steps_per_epoch": 3}


class LocalTraining:
    """A worker, and client tasks of its clients as a round would make them."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.method = config.method
        self.worker = worker_of(config)

    def task(self, client: int, local_epochs: int = 1) -> ClientTask:
        classes = self.worker.federation.input_spec(client).classes
        return ClientTask(0, 1, client, local_epochs, 0.05, self.config.training, classes)

    def train(self, client: int, message: Message, state: Any = None, local_epochs: int = 1) -> tuple[Update, Any]:
        model, data = self.worker.model(client), self.worker.data(client)
        task = self.task(client, local_epochs)
        with kept_globals(own_code=False):
            seed_globals(task, own_code=False)
            result: tuple[Update, Any] = self.method.train(model, data, message, state, task)
        return result

    def first_message(self) -> Message:
        message: Message = self.method.message(self.method.init_server(self.worker.model(0)), 0)
        return message

    def delta(self) -> Vector:
        """The first update of client 0, of a method whose clients keep nothing."""
        return self.train(0, self.first_message())[0].delta


@pytest.fixture
def make_local_training(make_config: MakeConfig) -> Callable[..., LocalTraining]:
    return lambda **options: LocalTraining(make_config("local", **options))
