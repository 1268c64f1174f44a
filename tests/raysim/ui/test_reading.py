"""A run's folder as the parts of the page."""

from __future__ import annotations

import fcntl
import json
import math
import time
from collections.abc import Iterator
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
    assert set(first) >= {"head", "tiles", "clients", "rounds", "faults", "log", "charts"}
    assert "<h1>fedavg on digits</h1>" in first["head"]["html"] and ">finished</span>" in first["head"]["html"]
    assert "fedavg · digits · cnn · seed 3" in first["head"]["html"]
    assert first["charts"]["series"]["accuracy"] == [(1.0, 0.4), (2.0, 0.8)]
    assert "best accuracy</span><b>80.00\u202f%</b>" in first["tiles"]["html"]
    assert "2 clients took part" in first["clients"]["html"]
    assert reading.refresh() == first
    RunFolder.open(folder).append_round({"round": 3, "accuracy": 0.6})
    second = reading.refresh()
    assert [name for name in second if second[name] != first[name]] == ["head", "tiles", "rounds", "charts"]
    assert "3 of 2 rounds" in second["head"]["html"] and "loss</span><b>0.5</b>" in second["tiles"]["html"]
    looks = [reading.newer(0)["look"]]
    assert reading.refresh() == second and reading.newer(looks[0]) == {"look": looks[0], "parts": {}}
    Table(folder / "rounds.csv").truncate(1)  # what a resumed run does
    assert reading.refresh()["charts"]["series"]["accuracy"] == [(1.0, 0.4)]


def test_curves_can_be_drawn_against_what_the_rounds_have_cost(folder: Path) -> None:
    RunFolder.open(folder).append_round({"round": 3, "accuracy": 0.9, "bytes_up": 5, "virtual_seconds": 14400.0})
    costs = Reading(folder).refresh()["charts"]["costs"]
    assert costs["bytes"] == {"label": "B sent and received", "points": [(1.0, 30.0), (2.0, 60.0)]}
    assert costs["virtual_seconds"] == {"label": "virtual hours", "points": [(3.0, 4.0)]}


def test_every_point_of_a_long_run_has_its_costs(folder: Path) -> None:
    """1,000 rounds, judged every seventh: costs are as few as the points are, at the same rounds."""
    run = RunFolder.open(folder)
    for number in range(3, 1001):
        judged = {"accuracy": 0.5, "loss": 1.0} if number % 7 == 0 else {}
        run.append_round({"round": number, "train_loss": 2.0, "bytes_down": 10, "bytes_up": 20} | judged)
    charts = Reading(folder).refresh()["charts"]
    costs = dict(charts["costs"]["bytes"]["points"])
    for curve in ("accuracy", "loss", "train_loss"):
        rounds = [number for number, _ in charts["series"][curve]]
        assert rounds[-1] > 990 and set(rounds) <= set(costs)
    assert charts["costs"]["bytes"]["label"] == "kB sent and received" and costs[994] == pytest.approx(29.82)
    assert len(costs) < 600


def test_an_infinite_loss_is_shown_and_not_drawn(folder: Path) -> None:
    """The tile told the last finite loss; charts are sent as JSON, which has no infinity."""
    RunFolder.open(folder).append_round({"round": 3, "accuracy": 0.1, "loss": math.inf, "seconds_round": math.inf})
    RunFolder.open(folder).append_clients([{"round": 3, "client": 1, "loss": math.inf, "accuracy": math.inf}])
    parts = Reading(folder).refresh()
    assert "loss</span><b>inf</b>" in parts["tiles"]["html"] and ">inf</td>" in parts["rounds"]["html"]
    assert ">inf</td>" in parts["clients"]["html"] and "3 of 2 rounds" in parts["head"]["html"]
    assert parts["charts"]["series"]["loss"] == [(1.0, 1.0), (2.0, 0.5)]
    json.dumps(parts["charts"], allow_nan=False)


def test_a_folder_that_breaks_is_said_on_the_page(folder: Path) -> None:
    reading = Reading(folder)
    reading.refresh()
    reading.broken("<b>damaged")
    assert "&lt;b&gt;damaged" in reading.parts["head"]["html"]


def test_a_look_that_fails_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared folder may be away for a moment, just after a round was written."""
    reading = Reading(folder)
    reading.refresh()
    RunFolder.open(folder).append_round({"round": 3, "accuracy": 0.6})
    RunFolder.open(folder).append_clients([{"round": 3, "client": 0}])
    with monkeypatch.context() as away:
        away.setattr(reading._clients, "read", lambda: (_ for _ in ()).throw(OSError(116, "Stale file handle")))
        with pytest.raises(OSError, match="Stale"):
            reading.refresh()
    reading.refresh()
    assert reading.parts["charts"]["series"]["accuracy"][-1] == (3.0, 0.6)


def test_a_run_that_is_resumed_with_other_settings_is_shown_with_them(folder: Path) -> None:
    reading = Reading(folder)
    first = reading.refresh()
    assert "cnn · seed 3" in first["head"]["html"] and "--model" not in first["again"]["html"]
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("name: cnn", "name: logistic"))
    look = reading.newer(0)["look"]
    second = reading.refresh()
    assert "logistic · seed 3" in second["head"]["html"]
    assert "--model logistic" in second["again"]["html"] and "again" in reading.newer(look)["parts"]
    assert f'<div data-part="again">{second["again"]["html"]}</div>' in reading.page()


@pytest.fixture
def _west(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A clock five hours behind UTC."""
    with monkeypatch.context() as there:
        there.setenv("TZ", "EST5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_west")
def test_faults_have_the_date_and_zone_that_the_log_has(folder: Path) -> None:
    """A browser and its server may be in different zones."""
    path = folder / "status.json"
    status = json.loads(path.read_text())
    status["faults"][0]["time"] = 1_000_000_000.7
    path.write_text(json.dumps(status))
    assert "<time>2001-09-09T01:46:40+00:00 · round 0</time>" in Reading(folder).refresh()["faults"]["html"]
    status["faults"][0]["time"] = 1e300
    path.write_text(json.dumps(status))
    with pytest.raises(ResultsError, match=r"faults holds a time that is no moment: 1e\+300"):
        Reading(folder).refresh()


def test_states(folder: Path) -> None:
    with Recorder(folder, (1, 1)) as recorder:
        recorder.begins()
    assert Reading(folder).refresh()["head"]["html"].count("chip died") == 1
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert Reading(folder).refresh()["head"]["html"].count("chip running") == 1
    (folder / "status.json").unlink()  # of a run of an earlier version
    reading = Reading(folder)
    assert reading.refresh()["head"]["html"].count("chip unknown") == 1
    take_back(folder)
    assert reading.refresh()["head"]["html"].count("chip gone") == 1


def test_a_run_that_left_its_empty_folder_is_gone(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "method: {name: fedavg}\n", {})
    reading = Reading(tmp_path)
    take_back(tmp_path)
    assert tmp_path.exists() and reading.refresh()["head"]["html"].count("chip gone") == 1


def test_a_status_that_lacks_something_is_said_as_a_broken_one_is(folder: Path) -> None:
    for status in ('{"faults": [{}]}', '{"faults": ['):
        (folder / "status.json").write_text(status)
        with pytest.raises(ResultsError, match=r"Cannot read the run in .*: status\.json: "):
            Reading(folder).refresh()


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"is no run folder: config\.yaml is missing"):
        Reading(tmp_path)
    (tmp_path / "config.yaml").write_text("a: [")
    with pytest.raises(ResultsError, match="Cannot read the run"):
        Reading(tmp_path)
