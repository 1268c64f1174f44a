"""``python -m raysim.timeline``: the order of events of a run, before any training."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from raysim.errors import ConfigError
from raysim.running.open_run import prepare
from raysim.running.simulation import run
from raysim.timeline import main
from tests.small_runs import small_run, words

OPTIONS = {
    "model.name": "logistic",
    "workload.clients": 5,
    "workload.limit": 150,
    "schedule.rounds": 6,
    "schedule.local_epochs": 1,
    "timing.mode": "buffered",
    "timing.buffer": 2,
    "devices.preset": "phones",
    "devices.drop_probability": 0.2,
}
WORDS = words(OPTIONS)


def test_a_run_has_the_steps_that_were_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--method", "fedavg", "--output", str(tmp_path / "plan")]) == 0
    printed = capsys.readouterr().out
    assert "buffered, devices phones: 5 clients" in printed
    planned = pd.read_csv(tmp_path / "plan" / "steps.csv")
    rounds = run(small_run(tmp_path / "run", OPTIONS)).rounds
    for name in ("virtual_seconds", "joules", "staleness", "clients_lost", "bytes_up"):
        assert planned[name].tolist() == pytest.approx(rounds[name].tolist())
    tasks = pd.read_csv(tmp_path / "plan" / "tasks.csv")
    assert (tasks["fate"] == "update").sum() == rounds["participants"].sum()
    assert (tmp_path / "plan" / "timeline.png").read_bytes().startswith(b"\x89PNG")


def test_a_plan_is_not_written_into_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = prepare(small_run(tmp_path / "run", OPTIONS))
    before = [*folder.iterdir()]
    words = ["--config", str(folder / "config.yaml")]
    assert main(words) == 2 and [*folder.iterdir()] == before
    assert f"output: {folder} holds a run, and a plan has a folder of its own" in capsys.readouterr().err
    assert main([*words, "--output", str(folder / "config.yaml")]) == 2
    assert "config.yaml is a file, where a folder is needed" in capsys.readouterr().err
    assert main([*words, "--output", str(tmp_path / "plan")]) == 0 and [*folder.iterdir()] == before


def test_help_says_what_the_command_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Plans a run in virtual time without any training") and "--timing.mode" in printed


def test_what_cannot_be_planned_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--devices.preset", "none", "--output", str(tmp_path / "plan")]) == 2
    assert "devices.preset: none has no virtual time to plan" in capsys.readouterr().err
    assert main([*WORDS, "--timing.bufer", "2"]) == 2
    assert "--timing.buffer" in capsys.readouterr().err
    few = tmp_path / "trace.csv"
    few.write_text("seconds_per_sample\n0.1\n")
    with pytest.raises(ConfigError, match="has 1 rows for 5 clients"):  # before there is a folder, or a Ray
        prepare(small_run(tmp_path / "run", OPTIONS, devices__preset="trace", devices__trace=str(few)))
    words = [*WORDS, "--events.drift", "labels", "--events.drift_at", "1e6"]
    assert main([*words, "--output", str(tmp_path / "plan")]) == 2
    assert "events.drift_at: 1e+06 is after the last server step, at" in capsys.readouterr().err
    assert not (tmp_path / "plan").exists()
