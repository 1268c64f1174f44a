"""The split as a heat map, from a folder that may come from anyone."""

from __future__ import annotations

from pathlib import Path

import pytest

from raysim.report.html import Heat
from raysim.report.partition_map import SHOWN, heat_map


def write(folder: Path, *lines: str) -> Path:
    (folder / "partition.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_a_cell_is_the_stronger_the_more_samples_it_has(tmp_path: Path) -> None:
    folder = write(tmp_path, "client,name,samples,test_samples,class_0,class_1,filled", "0,client 0,40,4,30,10,0")
    table, note = heat_map(folder)
    assert table is not None and note == "Training samples of 1 client by class"
    assert table.headings == ["client", "0", "1", "all", "for tests"]
    assert table.rows == [["0", Heat("30", 1.0), Heat("10", 1 / 3), "40", "4"]]


def test_sites_have_names_copies_are_said_and_without_classes_the_samples_are_the_map(tmp_path: Path) -> None:
    folder = write(tmp_path, "client,name,samples,test_samples,filled", "0,<b>,10,0,2", "1,Paris,5,0,0")
    table, note = heat_map(folder)
    assert table is not None and note == "Training samples of 2 clients"
    assert table.headings == ["client", "samples", "copies"] and table.words == {0}
    assert table.rows == [["<b>", Heat("10", 1.0), "2"], ["Paris", Heat("5", 0.5), "0"]]


def test_a_client_named_by_another_number_keeps_its_name(tmp_path: Path) -> None:
    folder = write(tmp_path, "client,name,samples,test_samples,filled", "0,client 0,10,0,0", "1,client 5,5,0,0")
    table, _ = heat_map(folder)
    assert table is not None and [row[0] for row in table.rows] == ["0", "client 5"]


def test_of_many_clients_every_second_or_third_is_shown(tmp_path: Path) -> None:
    rows = [f"{client},client {client},{client},1,0" for client in range(2 * SHOWN + 1)]
    table, note = heat_map(write(tmp_path, "client,name,samples,test_samples,filled", *rows))
    assert table is not None and [row[0] for row in table.rows[:3]] == ["0", "3", "6"]
    assert note.endswith("one client in 3 is shown")


@pytest.mark.parametrize(
    "text", ["", "client\n", "a,b\n1,2\n", "client,name,samples\n0,x,many\n", "\0", "name\n\ud7ff\n"]
)
def test_what_is_no_table_of_a_split_is_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "partition.csv").write_text(text)
    assert heat_map(tmp_path) == (None, "")
    assert heat_map(tmp_path / "absent") == (None, "")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = write(tmp_path, "client,name,samples", "0,secret,1") / "partition.csv"
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "partition.csv").symlink_to(secret)
    assert heat_map(tmp_path / "run") == (None, "")
