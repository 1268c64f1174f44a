"""Finding runs by name, the list of runs, and the states that a run is found in, from folders written by hand."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest

from raysim import sitting, status
from raysim.attach import main
from raysim.errors import ResultsError
from raysim.following import Follower
from raysim.progress import Progress
from raysim.results import RunFolder
from raysim.status import Recorder, settle
from raysim.watching import Watched

YAML = "method: {name: fedavg}\nworkload: {name: synthetic}\nmodel: {name: cnn}\nseed: 3\n"


class Seen(Progress):
    """A display that remembers which rounds it was told of as going on."""

    def __init__(self, title: str, rounds: int, epochs: int) -> None:
        super().__init__(title, rounds, epochs, io.StringIO())
        self.started: list[int] = []

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        self.started.append(round)


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def made(path: Path, rounds: int = 0) -> RunFolder:
    folder = RunFolder.create(path, YAML, {})
    for number in range(1, rounds + 1):
        times = {"clients_per_second": 1.0, "seconds_round": 1.5}
        counts = {"local_epochs": 1, "epochs_total": number, "participants": 2, "bytes_down": 10, "bytes_up": 20}
        accuracy = 0.5 if number == 1 else None  # not measured in every round
        measured = {"accuracy": accuracy, "loss": accuracy, "train_loss": 0.25}
        folder.append_round({"round": number} | counts | measured | times)
    return folder


def written(folder: Path) -> None:
    """Wait until the status is there."""
    while not status.read(folder):
        time.sleep(0.01)


def test_an_unknown_name_is_told_the_nearest(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(runs / "fedavg-digits-seed0")
    made(runs / "local-toy-seed5")
    assert main(["fedavg-digit-seed0"]) == 2
    errors = capsys.readouterr().err
    assert "Did you mean fedavg-digits-seed0?" in errors and "local" not in errors
    (runs / "empty").mkdir()
    assert main([str(runs / "empty")]) == 2 and "config.yaml is missing" in capsys.readouterr().err
    assert main(["--stop"]) == 2 and "of which run?" in capsys.readouterr().err


def test_the_list(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0 and f"No runs in {runs}" in capsys.readouterr().out
    made(runs / "one", rounds=2)
    with Recorder(runs / "one", (1, 1)) as recorder:
        recorder.ends("finished")
    made(runs / "two")
    with Recorder(runs / "two", (1, 1, 1)), sitting.sitting(runs / "two"):
        written(runs / "two")
        assert main([]) == 0
    head, *lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head[:3] == ["run", "state", "round"]
    assert sorted(line[:4] for line in lines) == [["one", "finished", "2/2", "50.00"], ["two", "preparing", "0/3", "-"]]
    assert lines[-1][-1] == str(sitting.holder(runs / "two")["process"])


@pytest.mark.parametrize(
    ("state", "code", "said"),
    [
        ("stopped", 130, "raysim: stopped"),
        ("failed", 1, "round 3, clients [7]: out of luck"),
        ("running", 1, "the run died in round 2 of 3"),
        ("", 1, "no process is at work on this run, and it has not begun"),
    ],
)
def test_a_run_that_is_over(runs: Path, capsys: pytest.CaptureFixture[str], state: str, code: int, said: str) -> None:
    made(runs / "one", rounds=2)
    if state:
        with Recorder(runs / "one", (1, 1, 1)) as recorder:
            recorder.begins()
            recorder.placed("2 client actors")
            recorder.round_started(2, 1, 2)
            recorder.fault("client-actor-01 died")
            if state != "running":
                recorder.ends(state)  # type: ignore[arg-type]
        if state == "failed":
            settle(runs / "one", "failed", "round 3, clients [7]: out of luck")
    assert main(["one"]) == code
    errors = capsys.readouterr().err
    assert said in errors and errors.endswith("--resume runs/one\n")
    if state:
        shown = errors.splitlines()
        assert shown[0] == "fedavg on synthetic with cnn, seed 3" and "synthetic: made up" in shown[1]
        assert shown[2:4] == ["2 client actors", "round 2: client-actor-01 died"]
        assert "round 1/3  epochs 1/3  clients    2  accuracy  50.00 %" in shown[4]
        assert "round 2/3  epochs 2/3  clients    2  accuracy        -" in shown[5]


def test_only_the_last_rounds_of_many_are_printed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(runs / "one", rounds=30)
    with Recorder(runs / "one", (1,) * 30) as recorder:
        recorder.ends("stopped")
    assert main(["one"]) == 130
    lines = capsys.readouterr().err.splitlines()
    assert "20 earlier rounds are in" in lines[2]
    assert [line.split()[1] for line in lines if line.startswith("round ")] == [f"{n}/30" for n in range(21, 31)]


def test_what_an_earlier_sitting_left_is_not_taken_for_the_present_one(runs: Path) -> None:
    folder = runs / "one"
    made(folder)
    with Recorder(folder, (1, 1)) as recorder:
        recorder.begins()
        recorder.ends("stopped")
    watched = Watched(folder)
    with sitting.sitting(folder):
        assert watched.live()["state"] == "preparing"
        with Recorder(folder, (1, 1)) as recorder:
            recorder.begins()
            recorder.ends("finished")
        assert watched.live()["state"] == "finished"
    assert json.loads((folder / sitting.NAME).read_text())["process"] > 0


def test_two_processes_never_sit_on_one_run_and_an_old_wish_to_stop_is_void(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitting, "LOCK_SECONDS", 0.1)
    folder = runs / "one"
    made(folder)
    sitting.ask_to_stop(folder)
    with sitting.sitting(folder):
        assert not sitting.asked_to_stop(folder)
        with pytest.raises(ResultsError, match=r"process \d+ on .* is at work on this run"), sitting.sitting(folder):
            pass
    with sitting.sitting(folder):  # it let go
        pass


def test_a_run_that_nobody_launched_cannot_be_stopped_from_here(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(runs / "one")
    with folder.exclusive(), Recorder(runs / "one", (1,)):  # raysim.run in a script, say
        written(runs / "one")
        assert main(["--stop", "one"]) == 2
    assert "was not started by raysim.launch" in capsys.readouterr().err


def test_an_outcome_is_written_where_the_driver_could_not(tmp_path: Path) -> None:
    settle(tmp_path, "failed", "no cluster")
    found = status.read(tmp_path)
    assert (found["state"], found["message"]) == ("failed", "no cluster")
    with Recorder(tmp_path, (1,)) as recorder:
        recorder.fault("lost")
    settle(tmp_path, "stopped", "")
    found = status.read(tmp_path)
    assert (found["state"], found["current"], found["counts"]["faults"]) == ("stopped", None, 1)


def test_a_round_that_is_in_the_table_by_now_is_not_shown_as_going_on(runs: Path) -> None:
    """The status is read before the table, which may be a round ahead."""
    made(runs / "one", rounds=2)
    with Recorder(runs / "one", (1, 1, 1)) as recorder:
        recorder.begins()
        recorder.round_started(2, 1, 2)
    display = Seen("", 3, 3)
    follower = Follower(Watched(runs / "one"), display)
    follower.refresh()
    assert display.started == []
    with Recorder(runs / "one", (1, 1, 1)) as recorder:
        recorder.round_started(3, 1, 2)
    follower.refresh()
    assert display.started == [3]
