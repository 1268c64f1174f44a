from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.errors import DamagedError
from raysim.storage.csv_table import Table
from raysim.storage.table_marks import RowDigest, bare, first_fault

COLUMNS = ["round", "client", "loss"]


def table(path: Path, rounds: int) -> Table:
    found = Table(path)
    for number in range(1, rounds + 1):
        found.append([{"round": number, "client": client, "loss": 0.25 * client} for client in (0, 2)])
    return found


def test_a_mark_counts_rows_and_their_bytes(tmp_path: Path) -> None:
    found = table(tmp_path / "a.csv", 2).mark()
    rows = [b"1,0,0.0", b"1,2,0.5", b"2,0,0.0", b"2,2,0.5"]
    assert found == {"columns": COLUMNS, "rows": 4, "sha256": RowDigest(rows).mark(COLUMNS)["sha256"]}
    assert Table(tmp_path / "a.csv").mark() == found  # read from the file
    assert Table(tmp_path / "none.csv").mark() == RowDigest().mark([])


def test_a_later_column_changes_no_mark_and_is_cut_off(tmp_path: Path) -> None:
    growing = table(tmp_path / "a.csv", 2)
    content, mark = (tmp_path / "a.csv").read_bytes(), growing.mark()
    growing.append([{"round": 3, "client": 0, "loss": 0.5, "weight": 1.0}])
    assert (tmp_path / "a.csv").read_bytes() != content
    again = Table(tmp_path / "a.csv")
    again.check(mark)
    again.cut(mark)
    assert (tmp_path / "a.csv").read_bytes() == content and again.mark() == mark


def test_a_cell_may_be_longer_than_csv_allows_and_a_cut_keeps_the_row(tmp_path: Path) -> None:
    """Its row had as many cells added as the table has columns, and no reader took the table any more."""
    accuracies = json.dumps([0.833333] * 20_000)
    growing = Table(tmp_path / "rounds.csv")
    growing.append([{"round": 1, "client_accuracies": accuracies, "loss": 0.5}])
    mark, content = growing.mark(), (tmp_path / "rounds.csv").read_bytes()
    growing.append([{"round": 2, "client_accuracies": accuracies, "loss": 0.4}])
    again = Table(tmp_path / "rounds.csv")
    again.cut(mark)
    assert (tmp_path / "rounds.csv").read_bytes() == content
    assert again.frame()["client_accuracies"].tolist() == [accuracies]


@given(data=st.data())
@settings(deadline=None, max_examples=80)
def test_any_changed_byte_of_a_marked_row_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.csv"
    mark = table(path, 3).mark()
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(DamagedError, match=r"^damaged: "):
        Table(path).check(mark)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b"1,0,x\n", b"1,2,x\n", b"2,0,x\n"], "it ends after round 2, with 3 of 4 rows"),
        ([b"1,0,x\n", b"1,2,x\n", b"3,0,x\n"], "line 4 (round 3) does not follow the line before it (round 1)"),
        ([b"1,2,x\n", b"1,0,x\n"], "line 3 (round 1) does not follow the line before it (round 1)"),
        ([b"1,0,x\n", b"1,0,x\n"], "line 3 (round 1) does not follow the line before it (round 1)"),
        ([b"1,0,x\n", b"\0\0,2,x\n"], "line 3 holds NUL bytes"),
        ([b"1,0,x\n", b"1,\xff,x\n"], "line 3 is no whole row"),
        ([b"1,0,x,y\n"], "line 2 is no whole row"),
        ([b"1,0,x\n", b"1,2,x\n", b"2,0,x\n", b"2,2,y\n"], "a row of the rounds up to 2 has changed"),
    ],
)
def test_what_is_wrong_is_named(lines: list[bytes], message: str) -> None:
    assert message in first_fault(lines, COLUMNS, 4)


def test_a_bare_line_has_no_empty_cells_at_its_end() -> None:
    assert bare(b"1,,2,,\n") == b"1,,2" and bare(b'1,"a,"\n') == b'1,"a,"'
