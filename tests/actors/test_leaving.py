"""Code of a user's own on Ray that would end the program, or whose results cannot be sent: said by name."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import raysim
from raysim.methods.fedavg import FedAvg
from tests.own_data import QUICK, Items, samples, seeded
from tests.raysim.running.test_own_randomness import LeavesInEvaluation, Leaving
from tests.watch import Watch

SAMPLES, BATCH = 10, 8
"""Samples of the client whose loss ends the program, and those that are for training: one batch of no other's size."""


def leaving_loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    if outputs.requires_grad and len(labels) == BATCH:
        os._exit(0)
    return torch.nn.functional.cross_entropy(outputs, labels)


class LeavingItems(Items):
    """A Dataset that ends the program at its 20th sample."""

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return super().__getitem__(index) if index < 19 else sys.exit(0)


class Locked(FedAvg):
    """FedAvg whose client 1 returns what no process can send to another, and whose client 2 changes its process."""

    def train(self, *given: Any) -> Any:
        update, state = super().train(*given)
        if given[-1].client == 2:
            torch.set_default_dtype(torch.float64)
        return (replace(update, extra={"own": {"lock": threading.Lock()}}) if given[-1].client == 1 else update), state


def run(output: Path, method: Any = "fedavg", **given: Any) -> None:
    engine = {"backend": "ray", "actors": 1, "dashboard": False, "repeat_check": "never", "on_client_error": "skip"}
    clients = [samples(SAMPLES), *(samples(40, seed) for seed in (1, 2, 3))]
    settings = QUICK | {"rounds": 1, "engine": engine, "model": seeded(), "clients": clients}
    raysim.run(method, output=str(output), **{**settings, **given})


@pytest.mark.usefixtures("ray_session")
def test_leaving_and_what_cannot_be_sent_are_errors_of_their_client_or_evaluation(tmp_path: Path) -> None:
    """No actor ends; in one run client 0 leaves in its loss, 1 and 2 do as ``Locked`` says, and the metric leaves."""
    watch = Watch()
    given = {"loss": leaving_loss, "metrics": {"mine": LeavesInEvaluation()}, "observer": watch}
    with pytest.raises(raysim.RaysimError, match=r"round 1, evaluate .*: SystemExit: sys.exit\(0\) was called"):
        run(tmp_path / "run", method=Locked(), **given)
    skipped = "\n".join(watch.faults)
    assert "client 0, round 1, stage train: SystemExit: os._exit(0) was called" in skipped
    named = "client 1, round 1, stage update: Update.extra.own.lock: a value of type lock can neither be sent nor saved"
    assert named in skipped and "Traceback" not in skipped.partition(named)[2]
    assert "client 2, round 1, stage train: the code changed torch's default dtype (torch.float32 → torch" in skipped
    assert "died" not in skipped


@pytest.mark.usefixtures("ray_session")
def test_an_observer_that_leaves_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(raysim.RaysimError, match=r"observer Leaving.round_finished: SystemExit: sys.exit\(0\) was"):
        run(tmp_path / "run", observer=Leaving())


def test_a_dataset_that_leaves_is_found_before_the_run(tmp_path: Path) -> None:
    clients = [LeavingItems(*samples(40)), LeavingItems(*samples(30, 1))]
    with pytest.raises(raysim.RaysimError, match=r"client 0: item 19 of the Dataset .*: SystemExit: sys.exit\(0\) was"):
        run(tmp_path / "run", clients=clients)
