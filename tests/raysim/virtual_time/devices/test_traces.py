"""Whatever is in ``devices.trace``, it gives profiles or one sentence, soon."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from raysim.config.timing import Devices
from raysim.errors import ConfigError
from raysim.virtual_time.devices.traces import CHUNK, LARGEST_JSON, digest, read


def column(path: Path, clients: int = 2) -> list[float]:
    table, _ = read(Devices(preset="trace", trace=str(path)), clients)
    return [float(value) for value in table["seconds_per_sample"]]


HUGE = "9" * 400
HOSTILE = {
    "deep.json": "[" * 100_000,
    "deep in a row.json": '[{"available": ' + "[" * 100_000,
    "huge.json": f'[{{"seconds_per_sample": {HUGE}}}, {{}}]',
    "huger.json": f'[{{"seconds_per_sample": {"9" * 5000}}}, {{}}]',
    "huge text.json": f'[{{"seconds_per_sample": "{HUGE}"}}, {{}}]',
    "huge speed.json": f'[{{"computation": {HUGE}}}, {{}}]',
    "huge period.json": f'[{{"available": "0-1", "period": {HUGE}}}, {{"available": "", "period": {HUGE}}}]',
    "huge window.json": f'[{{"available": [[0, {HUGE}]]}}, {{}}]',
    "text.json": '[{"computation": 1, "communication": "fast"}, {}]',
    "null.json": '[{"communication": null}, {}]',
    "list.json": '[{"communication": [1]}, {}]',
    "true client.json": '[{"client": true}, {}]',
    "huge client.json": f'[{{"client": {HUGE}}}, {{}}]',
    "true.json": '[{"latency": true}, {}]',
    "true speed.json": '[{"communication": true}, {}]',
    "zero.json": '[{"communication": 0}, {}]',
    "pairs.json": '[{"available": [1, 2]}, {}]',
    "object.json": '[{"available": {"a": 1}}, {}]',
    "number.json": '[{"available": 7}, {}]',
    "period.json": '[{"available": "0-1", "period": [1]}, {}]',
    "constant.json": '[{"seconds_per_sample": NaN}, {}]',
    "text.csv": "computation,communication\n1,fast\n2,3\n",
    "huge.csv": f"seconds_per_sample\n{HUGE}\n1\n",
    "cells.csv": "seconds_per_sample,latency\n1,2,3\n1,2,3\n",
    "empty.csv": "",
    "header.csv": "seconds_per_sample\n",
    "NUL.csv": "seconds_per_sample\n\0\n1\n",
    "no gzip.csv.gz": "seconds_per_sample\n1\n1\n",
    "no zip.csv.zip": "seconds_per_sample\n1\n1\n",
    "no xz.csv.xz": "seconds_per_sample\n1\n1\n",
}


def test_a_trace_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.csv").write_text("seconds_per_sample\n1\n2\n")
    assert column(Path("~/own.csv")) == [1.0, 2.0]
    assert digest(Devices(preset="trace", trace="~/own.csv"))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_trace_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(HOSTILE[name])
    with pytest.raises(ConfigError, match=r"devices\.trace: ") as found:
        column(tmp_path / name)
    said = str(found.value)
    assert "\n" not in said and str(tmp_path / name) in said and len(said) < 500 + len(str(tmp_path))


def test_no_utf_8(tmp_path: Path) -> None:
    for name in ("x.csv", "x.json"):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00[\n")
        with pytest.raises(ConfigError, match=r"devices\.trace: .* cannot be read as (CSV|JSON): "):
            column(tmp_path / name)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ["x.csv", "x.json", "x.csv.gz"])
def test_pipes_and_devices_are_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ConfigError, match="it is not a regular file"):
        column(tmp_path / name)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match="it is not a regular file"):
        column(tmp_path / name)


@pytest.mark.timeout(180)
def test_a_packed_table_is_read_as_far_as_there_are_clients(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.csv.gz", "wb") as file:
        file.write(b"seconds_per_sample\n")
        for _ in range(20):
            file.write(b"1\n" * 10**6)
    assert (tmp_path / "x.csv.gz").stat().st_size < 10**5
    assert column(tmp_path / "x.csv.gz", 3) == [1.0, 1.0, 1.0]


def test_rows_of_the_first_clients_may_be_at_the_end_of_a_long_table(tmp_path: Path) -> None:
    rows = [f"{client},{client + 1}\n" for client in reversed(range(2 * CHUNK + 5))]
    (tmp_path / "x.csv").write_text("client,seconds_per_sample\n" + "".join(rows))
    assert column(tmp_path / "x.csv", 3) == [1.0, 2.0, 3.0]


def test_a_packed_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raysim.workloads.files.regular_files.SMALLEST_LIMIT", 2**24)  # to unpack 268 MB takes seconds
    with gzip.open(tmp_path / "x.csv.gz", "wb") as file:
        for _ in range(20):
            file.write(bytes(10**6).replace(b"\0", b"x"))
    with pytest.raises(ConfigError, match="unpacked it takes more"):
        column(tmp_path / "x.csv.gz")


def test_a_large_json_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate(LARGEST_JSON + 1)
    with pytest.raises(ConfigError, match=r"more than 67\.1089 MB; write it as CSV"):
        column(tmp_path / "x.json")


def test_honest_traces_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps([{"computation": 2, "communication": 1000}, {"computation": "4"}]))
    assert column(tmp_path / "x.json") == pytest.approx([0.006, 0.012])
    (tmp_path / "x.csv").write_text("seconds_per_sample,available\n0.5,0-5;7-9\n0.25,\n7,\n")
    assert column(tmp_path / "x.csv") == [0.5, 0.25]
