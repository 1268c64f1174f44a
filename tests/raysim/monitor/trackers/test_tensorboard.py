"""What TensorBoard reads of a run: the numbers of its tables, also after a stop, each round once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raysim.running.simulation import run
from tests.small_runs import small_run
from tests.watch import stopped

BASE: dict[str, Any] = {
    "model.name": "logistic",
    "workload.clients": 4,
    "workload.limit": 100,
    "schedule.rounds": 5,
    "evaluation.every": 2,
    "devices.preset": "phones",
    "engine.observer": "tensorboard",
}


def test_a_resumed_run_has_every_round_once(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = small_run(tmp_path / "run", BASE)
    rounds = run(config, resume=stopped(config, rounds=3)).rounds
    found = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()

    def curve(name: str) -> list[tuple[int, Any]]:
        return [(event.step, pytest.approx(event.value)) for event in found.Scalars(name)]

    assert curve("rounds/train_loss") == list(zip(rounds["round"], rounds["train_loss"], strict=True))
    judged = rounds[rounds["accuracy"].notna()]
    assert len(judged) == 3
    assert curve("rounds/accuracy") == list(zip(judged["round"], judged["accuracy"], strict=True))
    megabytes = ((rounds["bytes_down"] + rounds["bytes_up"]).cumsum() / 1e6).round()[judged.index]
    assert curve("megabytes/accuracy") == list(zip(megabytes, judged["accuracy"], strict=True))
    seconds = judged["virtual_seconds"].round()
    assert curve("virtual_seconds/loss") == list(zip(seconds, judged["loss"], strict=True))
