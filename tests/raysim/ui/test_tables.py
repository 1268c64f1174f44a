"""A CSV table that grows, is torn, is replaced."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from raysim.errors import ResultsError
from raysim.ui.tables import KEPT, Cell, Tail, cell, is_finite, thinned


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
    "text",
    [
        "round,auc\n1,\n2,\n3,0.9\n",  # a column that came twice: its rows were misread, or damage
        "round\n1\n5\n6\n",  # a run that was resumed: its first new round was missing
    ],
)
def test_a_file_that_has_the_inode_of_the_last_one_is_read_from_the_top(tmp_path: Path, text: str) -> None:
    """Two replacements between two looks can give the first inode back."""
    path = tmp_path / "rounds.csv"
    tail = Tail(path)
    path.write_text("round\n1\n2\n")
    tail.read()
    before = path.stat().st_ino
    path.write_text(text)
    assert path.stat().st_ino == before
    again, rows = tail.read()
    assert again and [row["round"] for row in rows] == [float(line[0]) for line in text.splitlines()[1:]]
    with path.open("a") as file:
        file.write("7\n" if "auc" not in text else "7,1\n")
    again, rows = tail.read()
    assert not again and [row["round"] for row in rows] == [7.0]


def test_a_long_table_goes_on_where_it_was(tmp_path: Path) -> None:
    """Only the header and the last bytes are compared, however much was read."""
    path = tmp_path / "rounds.csv"
    tail = Tail(path)
    path.write_text("round\n" + "".join(f"{number}\n" for number in range(KEPT)))
    assert len(tail.read()[1]) == KEPT
    for number in (1.0, 2.0):
        with path.open("a") as file:
            file.write(f"{number}\n")
        assert tail.read() == (False, [{"round": number}])


def test_after_damage_a_table_is_read_from_the_top(tmp_path: Path) -> None:
    """The rows of the look that failed, and all later ones, were lost."""
    path = tmp_path / "rounds.csv"
    tail = Tail(path)
    path.write_text("round,loss\n1,0.5\n")
    tail.read()
    whole = "round,loss\n1,0.5\n2,0.4\n3,0.3\n"
    path.write_text(whole.replace("0.3", "x"))
    for _ in range(2):
        with pytest.raises(ResultsError, match="'x' in column loss is no number"):
            tail.read()
    path.write_text(whole)
    again, rows = tail.read()
    assert again and [row["loss"] for row in rows] == [0.5, 0.4, 0.3]
    path.write_text("round,loss\n1,x\n")
    with pytest.raises(ResultsError, match="is no number"):
        tail.read()
    path.unlink()
    assert tail.read() == (True, [])  # the rows before the damage are void
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
