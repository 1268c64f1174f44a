"""The cells under way on the terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from raysim.studies.board import Board
from raysim.studies.cell_report import News, Reporter
from raysim.studies.cell_run import End
from raysim.studies.cells_left import CellsLeft
from tests.raysim.small_study import study_of


@pytest.fixture
def left(tmp_path: Path) -> CellsLeft:
    return CellsLeft(list(study_of(tmp_path).cells()), longest_first=True)


def test_the_table_has_round_accuracy_and_time_left_of_every_cell_under_way(left: CellsLeft) -> None:
    stream = io.StringIO()
    with Board(left, 2, stream, interactive=True) as board:
        cells = [left.take() for _ in range(3)]
        for cell in cells:
            assert cell is not None
            board.begins(cell)
        first, second, third = cells
        assert first and second and third
        board.hears(first, News(3, 10, 0.5, 70.0))
        board.hears(second, News(0, 10))
        board.hears(second, News(note="it starts again"))
        left.took(third, 60.0)
        board.ends(third, End("failed", "round 2: it is broken"))
        console = Console(file=io.StringIO(), width=100, record=True)
        console.print(board.display())
        lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert lines[:2] == ["cell round accuracy time left", f"{first.name} 3/10 0.5000 1:10"]
    # Of the three that are left and the second, 60 s each are expected: (180 + 60 + 70) / 2.
    assert lines[2:] == [f"{second.name} 0/10", "1 of 6 cells done, 1 failed, 2 under way, 2:35 left"]
    said = stream.getvalue()
    assert f"{third.name}: round 2: it is broken" in said and f"{second.name}: it starts again" in said


def test_without_a_terminal_a_line_begins_and_ends_every_cell(
    left: CellsLeft, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = left.take()
    assert cell is not None
    with Board(left, 2, io.StringIO()) as board:
        board.begins(cell)
        board.hears(cell, News(2, 2, 0.75, 0.0))
        board.ends(cell, End("finished"))
        board.begins(cell)
        board.ends(cell, End("finished", "the settings changed\nBring them back"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == cell.name and lines[1].startswith(f"{cell.name}: finished, accuracy 0.7500, ")
    assert not lines[1].endswith(")") and lines[-1].endswith(" (begun again from round 1: the settings changed)")


def test_a_reporter_tells_of_the_first_and_the_last_round_and_keeps_the_accuracy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[News] = []
    clock = [100.0]
    monkeypatch.setattr("raysim.studies.cell_report.time.monotonic", lambda: clock[0])
    reporter = Reporter(8, told.append)
    for number in (5, 6, 7, 8):  # it goes on after round 4
        reporter.round_started(number, 1, 3)
        clock[0] += 0.15
        accuracy = {6: 0.25}.get(number, float("nan"))
        reporter.round_finished({"round": number, "accuracy": accuracy})
    assert [(news.round, news.rounds) for news in told] == [(4, 8), (5, 8), (7, 8), (8, 8)]
    assert [news.accuracy for news in told[2:]] == [0.25, 0.25]
    assert [round(news.seconds_left, 6) for news in told[1:]] == [0.45, 0.15, 0.0]
