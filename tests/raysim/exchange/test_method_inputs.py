"""A method may not write into what it is given, nor return a client state that it did not begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raysim
from raysim.method import Context, Message
from raysim.methods.fedavg import FedAvg
from raysim.methods.local import Local
from tests.own_data import QUICK, seeded, three_clients


def failed(method: Any, output: Path, **options: Any) -> str:
    with pytest.raises(raysim.RaysimError) as caught:
        raysim.run(method, model=seeded(), clients=three_clients(), output=str(output), **QUICK | options)
    return str(caught.value)


class WritesIntoTheServersState(FedAvg):
    def aggregate(self, server: Any, updates: Any, context: Context) -> Any:
        server += updates.mean()
        return server


class WritesIntoWhatItDoesNotSend(FedAvg):
    def init_server(self, model: Any) -> Any:
        return {"model": super().init_server(model), "steps": np.zeros(1, np.float32)}

    def message(self, server: Any, client: int) -> Message:
        return super().message(server["model"], client)

    def aggregate(self, server: Any, updates: Any, context: Context) -> Any:
        server["steps"] += 1
        return server | {"model": super().aggregate(server["model"], updates, context)}


class WritesIntoAMessage(FedAvg):
    def train(self, model: Any, data: Any, message: Any, state: Any, task: Any) -> Any:
        message.parameters[:] *= np.float32(0.5)
        return super().train(model, data, message, state, task)


class WritesIntoItsState(Local):
    def train(self, model: Any, data: Any, message: Any, state: Any, task: Any) -> Any:
        state += np.float32(1)
        return super().train(model, data, message, state, task)


class KeepsWhatItNeverHad(FedAvg):
    def train(self, *given: Any) -> Any:
        return super().train(*given)[0], 1


@pytest.mark.parametrize("kept", [False, True])
def test_a_state_that_init_client_does_not_begin_is_no_state(tmp_path: Path, kept: bool) -> None:
    """It was lost without a word, unless the optimizer's moments were kept."""
    options = {"training.optimizer": "adam", "training.optimizer_state": "kept"} if kept else {}
    said = failed(KeepsWhatItNeverHad(), tmp_path / "run", **options)
    assert said.startswith("client 0, round 1, stage train") and "returned a int as the client's state" in said


@pytest.mark.parametrize(
    ("method", "stage"),
    [
        (WritesIntoTheServersState(), "round 1, stage aggregate"),
        (WritesIntoWhatItDoesNotSend(), "round 1, stage aggregate"),
        (WritesIntoAMessage(), "client 0, round 1, stage train"),
        (WritesIntoItsState(), "client 0, round 1, stage train"),
    ],
)
def test_what_a_method_is_given_is_read_only_in_this_process_too(tmp_path: Path, method: Any, stage: str) -> None:
    """Tasks under way have the same arrays, and a client that fails keeps its state: results changed without a word."""
    said = failed(method, tmp_path / "run")
    assert said.startswith(stage) and "read-only" in said
