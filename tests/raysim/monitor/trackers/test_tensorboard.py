"""What TensorBoard reads of a run: the numbers of its tables, also after a stop, each round once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raysim.running.simulation import run
from tests.raysim.monitor.trackers.tracked_run import cells, head
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


def texts(folder: Path) -> dict[str, str]:
    """The texts of a run."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder)).Reload()
    return {
        name.removesuffix("/text_summary"): found.Tensors(name)[0].tensor_proto.string_val[0].decode()
        for name in found.Tags()["tensors"]
    }


def test_cells_of_a_study_are_runs_beside_their_rows(tmp_path: Path) -> None:
    heads = cells(tmp_path, "tensorboard")
    assert [*sorted(heads)] == ["fedavg-seed0", "fedavg-seed1"]
    for seed, (name, proof) in enumerate(sorted(heads.items())):
        found = texts(tmp_path / "results" / "tensorboard" / name)
        assert {"method": "fedavg", "workload": "digits", "seed": str(seed), "proof": proof}.items() <= found.items()


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
    assert texts(tmp_path / "run" / "tensorboard")["proof"] == head(tmp_path / "run")
    assert curve("virtual_seconds/loss") == list(zip(seconds, judged["loss"], strict=True))
