"""A run's folder as the parts of the page."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from raysim.errors import ResultsError
from raysim.monitor.status_file import Recorder
from raysim.storage.csv_table import Table
from raysim.storage.run_folder import RunFolder, take_back
from raysim.ui.reading import Reading


def test_parts_are_new_only_when_something_changed(folder: Path) -> None:
    reading = Reading(folder)
    first = reading.refresh()
    assert set(first) == {"charts", "run", "rounds", "clients", "log"}
    assert first["run"]["title"] == "fedavg on digits" and first["run"]["state"] == "finished"
    assert first["run"]["line"] == "fedavg · digits · cnn · seed 3"
    assert first["rounds"]["series"]["accuracy"] == [(1.0, 0.4), (2.0, 0.8)]
    assert first["rounds"]["best_accuracy"] == 0.8 and first["rounds"]["totals"]["bytes_up"] == 40
    assert first["clients"]["counts"]["all"] == 2
    assert reading.refresh() == first
    RunFolder.open(folder).append_round({"round": 3, "accuracy": 0.6})
    second = reading.refresh()
    assert [name for name in second if second[name] != first[name]] == ["rounds"]
    assert second["rounds"]["count"] == 3 and second["rounds"]["last"]["loss"] == 0.5
    Table(folder / "rounds.csv").truncate(1)  # what a resumed run does
    assert reading.refresh()["rounds"]["series"]["accuracy"] == [(1.0, 0.4)]


def test_curves_can_be_drawn_against_what_the_rounds_have_cost(folder: Path) -> None:
    RunFolder.open(folder).append_round({"round": 3, "accuracy": 0.9, "bytes_up": 5, "virtual_seconds": 7200.0})
    assert Reading(folder).refresh()["rounds"]["costs"] == {
        "bytes": [(1.0, 30.0), (2.0, 60.0), (3.0, 65.0)],
        "hours": [(3.0, 2.0)],
    }


def test_states(folder: Path) -> None:
    with Recorder(folder, (1, 1)) as recorder:
        recorder.begins()
    assert Reading(folder).refresh()["run"]["state"] == "died"
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert Reading(folder).refresh()["run"]["state"] == "running"
    (folder / "status.json").unlink()  # of a run of an earlier version
    reading = Reading(folder)
    assert reading.refresh()["run"]["state"] == "unknown"
    take_back(folder)
    assert reading.refresh()["run"]["state"] == "gone"


def test_a_run_that_left_its_empty_folder_is_gone(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "method: {name: fedavg}\n", {})
    reading = Reading(tmp_path)
    take_back(tmp_path)
    assert tmp_path.exists() and reading.refresh()["run"]["state"] == "gone"


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"is no run folder: config\.yaml is missing"):
        Reading(tmp_path)
    (tmp_path / "config.yaml").write_text("a: [")
    with pytest.raises(ResultsError, match="Cannot read the run"):
        Reading(tmp_path)
