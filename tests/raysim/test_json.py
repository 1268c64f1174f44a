"""``--json`` of every command: one object on standard output, of errors too, and the exit codes as in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import raysim
from raysim.__main__ import COMMANDS, main
from tests.long_tests import long
from tests.small_runs import IN_PROCESS, LOGISTIC, words

SETTINGS = {**IN_PROCESS, **LOGISTIC, "schedule.rounds": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    return raysim.run(SETTINGS, output=str(tmp_path_factory.mktemp("json") / "run")).folder


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(capsys: pytest.CaptureFixture[str], *command: str, code: int = 0) -> Any:
    """The object that a command prints, which ends with an exit code."""
    assert main([*command, "--json"]) == code
    said = capsys.readouterr()
    found = json.loads(said.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert ("error" in found) == (code != 0)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_a_slip_is_an_object_and_a_sentence(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--nothing-like-this", "--json"]) == 2
    said = capsys.readouterr()
    assert list(json.loads(said.out)) == ["error"] and said.err.startswith("raysim")
    assert json.loads(said.out)["error"] in " ".join(said.err.split()) or "\n" in json.loads(said.out)["error"]


def test_the_commands_and_a_command_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys)["commands"].keys() == COMMANDS.keys()
    assert "nothing" in told(capsys, "nothing", code=2)["error"]


def test_a_run_that_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "method" in told(capsys, "launch", "--method=nothing", code=2)["error"]


def test_what_is_told_of_a_finished_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged = told(capsys, "evaluate", str(folder))
    assert judged["round"] == 1 and 0 < judged["values"]["accuracy"] < 1 and judged["rounds.csv"] == {}
    assert told(capsys, "report", str(folder)) == {"pages": [str(folder / "report.html")], "comparison": []}
    assert told(capsys, "verify", str(folder))["equal"]
    assert "no run folder" in told(capsys, "report", "nowhere", code=2)["error"]


def test_what_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    planned = told(capsys, "timeline", *words({**SETTINGS, "devices.preset": "phones"}))
    assert planned["steps"] == 1 and all(Path(file).is_file() for file in planned["files"])
    assert "properties" in told(capsys, "timeline", "--help")
    assert "devices.preset" in told(capsys, "timeline", code=2)["error"]


@long
def test_spectra(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = told(capsys, "spectra", "--workload=toy-graphs", "--clients=2", "--output=a.svg")
    assert len(drawn["distances"]) == len(drawn["clients"]) and drawn["files"] == ["a.svg", "a.csv"]


def test_data_sets(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path))
    assert not told(capsys, "data", "list")["cifar10"]["there"]
    assert "there is no" in told(capsys, "data", "verify", "cifar10", code=1)["error"]


def test_a_study(capsys: pytest.CaptureFixture[str]) -> None:
    options = {name: value for name, value in SETTINGS.items() if name != "method.name"}
    grid = ["study", "--grid=method=fedavg,fedprox", "--workers=1", "--output=grid", *words(options)]
    there = told(capsys, *grid)
    assert there["cells"] == there["finished"] == 2 and not there["failed"]
    assert {value["row"] for value in there["values"]} == {"fedavg", "fedprox"}
    assert all(value["seeds"].keys() == {"0"} for value in there["values"])
    assert "another study" in told(capsys, *grid, "--rounds=2", code=2)["error"]
    assert "of this machine" in told(capsys, "study", "--grid=mu=1", "--output=s3://a/b", code=2)["error"]


def test_a_search(capsys: pytest.CaptureFixture[str]) -> None:
    options = {**SETTINGS, "method.name": "fedprox", "workload.validation_share": 0.2}
    search = ["search", "--space=mu=0.1,1", "--trials=1", "--workers=1", "--output=search", *words(options)]
    found = told(capsys, *search)
    assert found["best"] == found["trials"][0] and found["best"]["trial"] == 1
    assert Path(found["settings"]).is_file()


def test_the_live_page(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raysim.ui.__main__.until_interrupted", lambda: None)
    assert told(capsys, "ui", str(folder))["url"].startswith("http://127.0.0.1:")
