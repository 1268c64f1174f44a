from __future__ import annotations

import json
import math
import os
import re
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.errors import DiskFullError, ResultsError
from raysim.results.result import load_result
from raysim.storage import atomic_files, folder_files, run_folder
from raysim.storage.csv_table import Table
from raysim.storage.run_folder import RunFolder


def round_row(number: int, **more: Any) -> dict[str, Any]:
    return {"round": number, "accuracy": 0.1 * number, "loss": np.float32(1) / 3, "seconds_train": 0.5} | more


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs" / "first", "method: {name: fedavg}\n", {"python": "3"})


@pytest.mark.parametrize("existed", [False, True])
def test_a_folder_that_was_there_before_stays_however_often_a_run_is_taken_back(tmp_path: Path, existed: bool) -> None:
    place = tmp_path / "run"
    if existed:
        place.mkdir()
    RunFolder.create(place, "method: {name: fedavg}\n", {})
    for _ in range(2):
        run_folder.take_back(place)
        assert place.exists() == existed and not [*place.glob("*")]


def test_create_and_open(folder: RunFolder) -> None:
    assert (folder.path / "config.yaml").read_text() == "method: {name: fedavg}\n"
    assert json.loads((folder.path / "environment.json").read_text()) == {"python": "3"}
    opened = RunFolder.open(folder.path)
    assert opened.checkpoints == folder.path / "checkpoints"
    assert opened.rounds().empty and opened.clients().empty


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("config.yaml", "already holds a run.*--resume"),
        ("rounds.csv", "not empty"),
        ("notes.txt", "it holds notes.txt"),
    ],
)
def test_a_folder_with_something_in_it_is_not_taken(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(ResultsError, match=message):
        RunFolder.create(tmp_path, "new", {})
    assert [path.name for path in tmp_path.iterdir()] == [name] and (tmp_path / name).read_text() == "x"


def test_what_is_no_run_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"config\.yaml is missing"):
        RunFolder.open(tmp_path)
    with pytest.raises(ResultsError, match="no such directory"):
        RunFolder.open(tmp_path / "absent")


def test_rows_are_on_file_at_once_and_keep_every_bit(folder: RunFolder) -> None:
    folder.append_round(round_row(1, participants=3))
    assert (folder.path / "rounds.csv").read_text().count("\n") == 2
    folder.append_round(round_row(2, participants=4) | {"accuracy": math.nan})
    frame = folder.rounds()
    assert list(frame.columns) == ["round", "accuracy", "loss", "seconds_train", "participants"]
    assert frame["round"].dtype == np.int64 and frame["participants"].tolist() == [3, 4]
    assert frame["loss"][0] == float(np.float32(1) / np.float32(3))
    assert math.isnan(frame["accuracy"][1])


@given(st.lists(st.floats(), min_size=1, max_size=5))
@settings(deadline=None, max_examples=50)
def test_any_float_comes_back(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    folder = RunFolder.create(tmp_path_factory.mktemp("r"), "", {})
    for number, value in enumerate(values):
        folder.append_round({"round": number, "value": value})
    np.testing.assert_array_equal(folder.rounds()["value"].to_numpy(np.float64), np.array(values))


def test_names_stay_text(folder: RunFolder) -> None:
    names = ["007", "NA", 'a,"b"', "two\nlines", "Zürich", "nan"]
    folder.append_clients({"round": 1, "client": client, "name": name} for client, name in enumerate(names))
    assert folder.clients()["name"].tolist() == ["007", "NA", 'a,"b"', "two lines", "Zürich", "nan"]
    folder.go_back(1, folder.marks())
    assert len(folder.clients()) == 6


def test_missing_values_are_empty_and_new_columns_widen_the_table(folder: RunFolder) -> None:
    folder.append_round(round_row(1))
    folder.append_round({"round": 2})
    folder.append_round(round_row(3, balanced_accuracy=0.25))
    RunFolder.open(folder.path).append_round(round_row(4, weight=2))  # the columns are known again after a restart
    text = (folder.path / "rounds.csv").read_text().splitlines()
    assert text[0] == "round,accuracy,loss,seconds_train,balanced_accuracy,weight"
    assert text[2] == "2,,,,,"
    frame = folder.rounds()
    assert frame["balanced_accuracy"].tolist()[2] == 0.25 and frame["balanced_accuracy"].isna().tolist() == [1, 1, 0, 1]
    assert len(frame) == 4


def test_going_back_drops_later_rounds_and_the_torn_line(folder: RunFolder) -> None:
    for number in (1, 2, 3):
        marks = folder.marks()
        folder.append_round(round_row(number))
        folder.append_clients([{"client": client, "round": number, "name": "a,b"} for client in (0, 1)])
    folder.finish({"accuracy": 1.0})
    for name in ("report.html", "curve.png"):
        (folder.path / name).write_text("of three rounds")
    with (folder.path / "rounds.csv").open("a") as file:
        file.write("4,0.")
    assert folder.rounds()["round"].tolist() == [1, 2, 3]  # a reader is not disturbed either
    folder.go_back(2, marks)
    assert folder.rounds()["round"].tolist() == [1, 2]
    assert folder.clients()["round"].tolist() == [1, 1, 2, 2]
    left = {path.name for path in folder.path.iterdir()}
    assert not left & {"rounds.parquet", "clients.parquet", "summary.json", "report.html", "curve.png"}
    folder.append_round(round_row(3))
    assert folder.rounds()["round"].tolist() == [1, 2, 3]


@given(st.integers(0, 400))
@settings(deadline=None, max_examples=40)
def test_a_table_cut_at_any_byte_can_be_continued(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    whole, torn = (Table(tmp_path_factory.mktemp(name) / "profile.csv") for name in "ab")
    rows = [round_row(number, name='q"uo,te') for number in range(1, 7)]
    whole.append(rows)
    content = whole.path.read_bytes()
    torn.path.write_bytes(content[:cut])
    torn.truncate(3)
    done = len(torn.frame())
    assert done == min(3, max(0, content[:cut].count(b"\n") - 1))
    torn.append(rows[done:])
    assert torn.path.read_bytes() == content


def test_finish_and_load(folder: RunFolder) -> None:
    folder.append_round(round_row(1))
    folder.append_clients([{"round": 1, "client": 0, "name": "1"}])
    folder.finish({"accuracy": np.float64(0.5), "loss": math.nan, "clients": np.int64(3), "list": (1, np.bool_(True))})
    result = load_result(folder.path)
    assert result.summary == {"accuracy": 0.5, "loss": None, "clients": 3, "list": [1, True]}
    assert result.config == {"method": {"name": "fedavg"}}
    pandas.testing.assert_frame_equal(pandas.read_parquet(folder.path / "rounds.parquet"), result.rounds)
    assert pandas.read_parquet(folder.path / "clients.parquet")["name"].tolist() == ["1"]
    assert not list(folder.path.glob("*.partial"))


def test_a_failed_rewrite_leaves_the_old_file(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.append_round(round_row(1))
    before = (folder.path / "rounds.csv").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        folder.append_round(round_row(2, another=1))  # a new column: the whole file is to be written again
        with pytest.raises(DiskFullError, match="No space left"):
            folder.flush()
        assert (folder.path / "rounds.csv").read_bytes() == before
        assert not list(folder.path.glob("*.partial"))
    # What was held back comes with the next row.
    folder.append_round(round_row(3, another=2))
    assert folder.rounds()["round"].tolist() == [1, 2, 3]


def test_a_row_that_a_full_disk_cuts_short_leaves_no_trace(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.append_round(round_row(1))
    before = (folder.path / "rounds.csv").read_bytes()
    opened = folder_files.open_file

    class Full(FileIO):
        """Takes four bytes and then no more, like a disk with four bytes left."""

        room = 4

        def write(self, data: Any) -> int:
            if not self.room:
                raise OSError(28, "No space left on device")
            taken, self.room = self.room, 0
            return super().write(data[:taken])

    def open_full(path: Path, mode: folder_files.Mode = "rb") -> Any:
        return Full(path, mode) if mode == "ab" else opened(path, mode)

    with monkeypatch.context() as patched:
        patched.setattr(atomic_files, "open_file", open_full)
        folder.append_round(round_row(2))
        folder.log("is lost, and no error")
        assert (folder.path / "rounds.csv").read_bytes() == before
        with pytest.raises(DiskFullError, match="No space left"):
            folder.flush()
    folder.flush()
    assert folder.rounds()["round"].tolist() == [1, 2]


def test_log_lines_carry_the_time(folder: RunFolder) -> None:
    folder.log("first")
    folder.log("second")
    lines = (folder.path / "run.log").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["first", "second"]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 ", line) for line in lines)


def test_new_run_paths_are_unique(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        path = run_folder.new_run_path(tmp_path, "fedrad", "digits", 0)
        path.mkdir()
        names.append(path.name)
    assert len(set(names)) == 3
    assert re.fullmatch(r"fedrad-digits-seed0-\d{8}-\d{6}", names[0])


def test_a_file_where_the_folder_should_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(ResultsError, match=r"file is a file, where a folder is needed\. Choose another place"):
            RunFolder.create(place, "", {})
    assert (tmp_path / "file").read_text() == "mine"
