"""Cells in processes of their own: the same bits as one after another, and what kills and signals cost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from raysim import study
from raysim.engine.observer import Silent
from raysim.storage.claims import claim_of
from raysim.storage.process_lock import is_held
from raysim.studies import cell_run, side_by_side, study_file, whole_study
from raysim.studies.cell_report import News
from raysim.studies.cell_run import End, folder_of
from raysim.studies.study_file import Cell
from tests.processes import within
from tests.raysim.small_study import keep

TEXT = """
title: Small
results: results
table: page.md
base: {workload.limit: 200, workload.clients: 3, schedule.rounds: ROUNDS, model.name: logistic}
rows: {FedAvg: {method.name: fedavg}, FedProx: {method.name: fedprox}}
seeds: [0]
measures: {accuracy: last}
"""
LONG = 300
"""Rounds of a cell that is there to be killed."""


class Rounds(Silent):
    """The rounds that were begun."""

    def __init__(self) -> None:
        self.begun: list[int] = []

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        self.begun.append(round)


def made(folder: Path, rounds: int, more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "small.yaml"
    path.write_text(TEXT.replace("ROUNDS", str(rounds)) + more, encoding="utf-8")
    return path


def rows(folder: Path) -> dict[str, bytes]:
    results = folder / "results"
    return {str(path.relative_to(results)): path.read_bytes() for path in sorted(results.rglob("*"))}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The rows of cells that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    assert study.main([str(made(folder, LONG)), "--workers", "2"]) == 0
    return rows(folder)


def started(path: Path) -> tuple[subprocess.Popen[str], Cell, int]:
    """A study at work, a cell of it with at least six rounds, and the number of its process."""
    words = [sys.executable, "-m", "raysim.study", str(path), "--workers", "2"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    cell = next(study_file.read(path).cells())
    table = folder_of(cell) / "rounds.csv"
    within(300, lambda: table.exists() and table.read_text(encoding="utf-8").count("\n") > 6)
    return process, cell, json.loads(claim_of(cell.path).read_text(encoding="utf-8"))["process"]


def goes_on(cell: Cell, *, to_its_end: bool = True) -> int:
    """The first round that a further attempt at the cell begins; where it is the first again, the end says why."""
    rounds = Rounds()
    end = cell_run.run_cell(cell, rounds, lambda: not to_its_end and bool(rounds.begun))
    assert end.kind == ("finished" if to_its_end else "stopped")
    assert not to_its_end or bool(end.reason) == (rounds.begun[0] == 1)
    return rounds.begun[0]


def test_two_workers_leave_the_bytes_that_one_leaves_a_failed_cell_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for count in ("1", "2"):
        path = made(tmp_path / count, 2)
        diverging = "Broken: {model.name: mlp, training.learning_rate: 1.0e+30}"
        path.write_text(path.read_text().replace("rows: {", f"rows: {{{diverging}, "), encoding="utf-8")
        assert study.main([str(path), "--workers", count]) == 1
    one = rows(tmp_path / "1")
    assert one == rows(tmp_path / "2") and len(one) == 2 * 3 + 2
    assert (tmp_path / "1" / "page.md").read_bytes() == (tmp_path / "2" / "page.md").read_bytes()
    assert "| Broken | 0 | 1 | client 0, round 1, stage update" in (tmp_path / "2" / "page.md").read_text(
        encoding="utf-8"
    )
    said = capsys.readouterr()
    assert (
        "FedAvg / seed 0: finished, accuracy 0." in said.out
        and said.err.count("Broken / seed 0: client 0, round 1") == 4
    )


@pytest.mark.slow
def test_a_killed_cell_is_found_and_goes_on_from_its_checkpoint(tmp_path: Path, whole: dict[str, bytes]) -> None:
    process, cell, number = started(made(tmp_path / "killed", LONG))
    os.kill(number, signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert f"{cell.name}: its process was killed by SIGKILL; it goes on from its last checkpoint" in out
    assert rows(tmp_path / "killed") == whole


@pytest.mark.slow
def test_cells_of_a_killed_study_stop_and_go_on(tmp_path: Path, whole: dict[str, bytes]) -> None:
    process, cell, _ = started(made(tmp_path / "killed", LONG))
    process.kill()
    process.communicate(timeout=300)
    within(300, lambda: not is_held(claim_of(cell.path)))  # they notice
    assert not cell.path.exists()
    assert goes_on(cell) > 6  # its last whole round was saved
    assert study.main([str(tmp_path / "killed" / "small.yaml"), "--workers", "2"]) == 0
    assert rows(tmp_path / "killed") == whole


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_the_last_whole_round_of_every_cell(tmp_path: Path, number: signal.Signals) -> None:
    process, cell, _ = started(made(tmp_path, LONG))
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 128 + number, err
    assert "a repeat goes on" in err and f"{cell.name}: stopped, its last whole round is saved" in out
    assert not cell.path.exists() and not is_held(claim_of(cell.path))
    assert goes_on(cell, to_its_end=False) > 6


def dies(connection: Connection) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def notes_its_number(connection: Connection) -> None:
    """Finishes cells at once."""
    while True:
        cell, _ = connection.recv()
        keep(cell, accuracy=[0.5])
        cell.path.with_suffix(".process").write_text(str(os.getpid()))
        connection.send(End("finished"))


def test_a_process_is_kept_for_many_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path, 2)
    path.write_text(path.read_text().replace("seeds: [0]", "seeds: [0, 1, 2, 3]"), encoding="utf-8")
    monkeypatch.setattr(side_by_side, "work", notes_its_number)
    assert study.main([str(path), "--workers", "2"]) == 0
    numbers = [file.read_text() for file in (tmp_path / "results").glob("*.process")]
    assert len(numbers) == 8 and len({*numbers}) <= 2


def test_no_cell_waits_for_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path, 2)
    path.write_text(path.read_text().replace("seeds: [0]", "seeds: [0, 1, 2]"), encoding="utf-8")
    seen: list[bool] = []

    def written(self: whole_study.Table) -> None:
        seen.append(within(300, lambda: len([*tmp_path.glob("results/*.csv")]) == 6))

    monkeypatch.setattr(side_by_side, "work", notes_its_number)
    monkeypatch.setattr(whole_study.Table, "cell_ended", written)
    assert study.main([str(path), "--workers", "2"]) == 0
    assert seen and all(seen)


def dies_between_two_cells(connection: Connection) -> None:
    """Finishes one cell; the order of a second reaches it, and it dies without a word."""
    cell, _ = connection.recv()
    keep(cell, accuracy=[0.5])
    connection.send(End("finished"))
    connection.recv()
    dies(connection)


def test_the_death_of_a_kept_process_is_none_of_the_cell_that_it_had_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made(tmp_path, 2)
    path.write_text(path.read_text().replace("seeds: [0]", "seeds: [0, 1]"), encoding="utf-8")
    monkeypatch.setattr(side_by_side, "work", dies_between_two_cells)
    assert study.main([str(path), "--workers", "2"]) == 0
    said = capsys.readouterr().out
    assert "its process was killed by SIGKILL before it began; another one computes it" in said
    assert "goes on" not in said


@pytest.mark.parametrize("before_its_order", [False, True])
def test_a_cell_whose_process_dies_twice_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], before_its_order: bool
) -> None:
    if before_its_order:
        start = ForkServerProcess.start
        monkeypatch.setattr(ForkServerProcess, "start", lambda self: (start(self), self.join(60)))
    path = made(tmp_path, 2)
    first, *others = study_file.read(path).cells()
    for cell in others:
        keep(cell, accuracy=[0.5])
    monkeypatch.setattr(side_by_side, "work", dies)
    assert study.main([str(path), "--workers", "2"]) == 1
    said = capsys.readouterr()
    assert said.out.count("was killed by SIGKILL") == 1 and "again without a further round" in said.err
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| FedAvg | 0 | 1 | its process was killed by SIGKILL, and again without a further round |" in page
    assert not is_held(claim_of(first.path))


def advances(connection: Connection) -> None:
    """Dies after one further round, and is done with the third."""
    cell, _ = connection.recv()
    attempts = cell.path.with_suffix(".attempts")
    number = len(attempts.read_text()) + 1 if attempts.exists() else 1
    attempts.parent.mkdir(parents=True, exist_ok=True)
    attempts.write_text("x" * number)
    connection.send(News(number, 3))
    if number < 3:
        os.kill(os.getpid(), signal.SIGKILL)
    keep(cell, accuracy=[0.5])
    connection.send(End("finished"))


def test_a_cell_whose_process_dies_again_after_a_further_round_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made(tmp_path, 3)
    for cell in [*study_file.read(path).cells()][1:]:
        keep(cell, accuracy=[0.5])
    monkeypatch.setattr(side_by_side, "work", advances)
    assert study.main([str(path), "--workers", "2"]) == 0
    assert capsys.readouterr().out.count("was killed by SIGKILL; it goes on") == 2


def test_a_cell_of_other_settings_starts_again(tmp_path: Path) -> None:
    cell = next(study_file.read(made(tmp_path, 8)).cells())
    halfway = Rounds()
    assert cell_run.run_cell(cell, halfway, lambda: len(halfway.begun) > 3) == End("stopped")
    assert folder_of(cell).exists() and not cell.path.exists()
    path = made(tmp_path, 8)
    path.write_text(path.read_text().replace("limit: 200", "limit: 300"), encoding="utf-8")
    assert goes_on(next(study_file.read(path).cells())) == 1
    assert not folder_of(cell).exists()


def test_a_worker_count_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert study.main([str(made(tmp_path, 2)), "--workers", "0"]) == 2
    assert "--workers 0: not allowed. Allowed: a whole number ≥ 1." in capsys.readouterr().err
