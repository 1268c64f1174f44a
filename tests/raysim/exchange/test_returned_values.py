"""What a method's functions return and nobody can use: one sentence that names the part, and no traceback."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.method import Message, Update
from raysim.methods.fedavg import FedAvg
from raysim.methods.local import Local
from tests.own_data import QUICK, seeded, three_clients

LOCK: Any = threading.Lock()
TENSOR: Any = torch.zeros(3)
NEITHER = "a value of type {} can neither be sent nor saved; use numpy arrays, numbers, text, dataclasses"


def changed(change: Callable[[Update], Any]) -> FedAvg:
    """FedAvg whose updates are changed after training."""

    class Changed(FedAvg):
        def train(self, *given: Any) -> Any:
            update, state = super().train(*given)
            return change(update), state

    return Changed()


class KeepsALock(Local):
    def train(self, *given: Any) -> Any:
        return super().train(*given)[0], {"lock": LOCK}


class SendsALock(FedAvg):
    def message(self, server: Any, client: int) -> Message:
        return replace(super().message(server, client), extra={"lock": LOCK})


UPDATES: dict[str, tuple[Callable[[Update], Any], str]] = {
    "a lock deep in extra": (
        lambda update: replace(update, extra={"own": [0, {"lock": LOCK}]}),
        f"Update.extra.own[1].lock: {NEITHER.format('lock')}",
    ),
    "a function": (lambda update: replace(update, extra={"f": len}), "Update.extra.f: a value of type builtin_func"),
    "a tensor": (lambda update: replace(update, extra={"z": TENSOR}), "Update.extra.z: a value of type Tensor"),
    "a metric": (
        lambda update: replace(update, metrics={"train_loss": 0.0, "own": LOCK}),
        f"Update.metrics.own: {NEITHER.format('lock')}",
    ),
    "a tensor as delta": (
        lambda update: replace(update, delta=TENSOR),
        "Update.delta is a Tensor, not a numpy array of float32",
    ),
    "no update": (lambda update: update.delta, "train returned a ndarray in the place of its Update"),
    "infinite": (
        lambda update: replace(update, extra={"own": np.array([np.inf])}),
        "its update holds NaN or infinite values (first in what it returns)",
    ),
}


def failed(method: Any, output: Path) -> str:
    with pytest.raises(raysim.RaysimError) as caught:
        raysim.run(method, model=seeded(), clients=three_clients(), output=str(output), **QUICK)
    return str(caught.value)


@pytest.mark.parametrize("case", UPDATES)
def test_an_update_is_refused_by_the_name_of_its_part(case: str, tmp_path: Path) -> None:
    change, words = UPDATES[case]
    said = failed(changed(change), tmp_path / "run")
    assert said.startswith(f"client 0, round 1, stage update: {words}") and "\n" not in said


def test_a_state_of_a_client_is_refused_by_the_name_of_its_part(tmp_path: Path) -> None:
    said = failed(KeepsALock(), tmp_path / "run")
    assert said.startswith("client 0, round 1, stage update: client state.method.lock: a value") and "\n" not in said


def test_a_message_is_refused_by_the_name_of_its_part(tmp_path: Path) -> None:
    said = failed(SendsALock(), tmp_path / "run")
    assert said == f"client 0, round 1, stage message: Message.extra.lock: {NEITHER.format('lock')}"
