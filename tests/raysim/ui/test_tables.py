"""A CSV table that grows, is torn, is replaced."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from raysim.errors import ResultsError
from raysim.ui.tables import Cell, Tail, cell, is_finite, thinned


def test_each_call_gives_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "rounds.csv"
    tail = Tail(path)
    assert tail.read() == (False, [])
    path.write_text("round,loss\n1,0.5\n2,")
    assert tail.read() == (True, [{"round": 1.0, "loss": 0.5}])
    assert tail.read() == (False, [])
    with path.open("a") as file:
        file.write("nan\n3,1\n")
    assert tail.read() == (False, [{"round": 2.0, "loss": None}, {"round": 3.0, "loss": 1.0}])


def test_a_replaced_or_shortened_file_is_read_from_the_top(tmp_path: Path) -> None:
    path, new = tmp_path / "rounds.csv", tmp_path / "new"
    tail = Tail(path)
    path.write_text("round\n1\n2\n")
    tail.read()
    new.write_text("round,auc\n1,\n2,\n3,0.9\n")
    new.replace(path)
    again, rows = tail.read()
    assert again and rows[-1] == {"round": 3.0, "auc": 0.9} and len(rows) == 3
    path.write_text("round\n1\n")
    assert tail.read() == (True, [{"round": 1.0}])
    path.unlink()
    assert tail.read() == (True, [])
    assert tail.read() == (False, [])


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("loss", "1e3", 1000.0),
        ("loss", "", None),
        ("loss", "nan", None),
        ("loss", "inf", math.inf),
        ("name", "007", "007"),
        ("phase", "a,b", "a,b"),
    ],
)
def test_cells(name: str, text: str, expected: Cell) -> None:
    assert cell(name, text) == expected


def test_text_in_a_column_of_numbers_is_damage() -> None:
    with pytest.raises(ValueError, match="'a,b' in column loss is no number"):
        cell("loss", "a,b")


@pytest.mark.parametrize("number", ["", "nan", "inf"])
def test_a_row_of_no_round_is_damage(tmp_path: Path, number: str) -> None:
    (tmp_path / "rounds.csv").write_text(f"round,loss\n{number},0.5\n")
    with pytest.raises(ResultsError, match="a row has no number in column round"):
        Tail(tmp_path / "rounds.csv").read()


def test_only_a_finite_number_is_drawn() -> None:
    assert is_finite(0.0)
    assert not any(map(is_finite, (None, "1", math.inf, -math.inf, math.nan)))


def test_thinned_keeps_both_ends() -> None:
    points = [(float(at), float(at)) for at in range(1000)]
    few = thinned(points, 10)
    assert len(few) == 10 and few[0] == (0.0, 0.0) and few[-1] == (999.0, 999.0)
    assert thinned(points[:10], 10) == points[:10]
