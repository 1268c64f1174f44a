"""Tolerance of another processor's rounding: distances by round, and agreement to printed digits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from raysim.running.simulation import run
from raysim.verification.distances import agree, state_distance
from raysim.verify import main
from tests.attack.folders import small
from tests.attack.forgeries import made_anew, read, write


@pytest.mark.parametrize(
    ("column", "first", "second", "agrees"),
    [
        ("accuracy", "0.8734", "0.87341", True),  # 87.34 % both
        ("accuracy", "0.87345", "0.87344", True),  # 87.34 and 87.35, less than half of the last digit apart
        ("accuracy", "0.8734", "0.8736", False),
        ("loss", "0.51230001", "0.51232", True),
        ("loss", "0.51234", "0.51236", True),  # printed 0.5123 and 0.5124, a fifth of a unit apart
        ("loss", "0.51231", "0.51239", False),
        ("loss", "0.5123", "0.5125", False),
        ("loss", "0.0012341", "0.0012342", True),  # four digits of what is small
        ("loss", "0.0012341", "0.0012361", False),
        ("loss", "0.0", "-0.0", True),
        ("loss", "nan", "0.5", False),
        ("loss", "", "0.5", False),
        ("participants", "3", "4", False),
        ("name", "1.0", "1.00", False),
    ],
)
def test_agreement_to_the_printed_digits(column: str, first: str, second: str, agrees: bool) -> None:
    assert agree(column, first, second) == agree(column, second, first) == agrees


def test_the_distance_of_states_by_hand() -> None:
    old = {"a": np.array([3.0, 4.0], np.float32), "b": np.zeros(2, np.float32), "n": np.array([1])}
    new = {**old, "a": np.array([3.0, np.nextafter(np.float32(4.0), np.float32(5.0))], np.float32)}
    found = state_distance(old, new)
    assert found is not None
    assert (found.values, found.differing, found.largest, found.median) == (4, 1, 1, 0.0)
    assert found.relative == pytest.approx(2.0**-21 / 5, rel=1e-6)
    assert state_distance(old, {**new, "b": np.zeros(3, np.float32)}) is None
    assert state_distance(old, {"a": old["a"]}) is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = {"method__name": "fedavg", "model__name": "mlp", "schedule__rounds": 2, "engine__checkpoint_every": 1}
    return run(small(tmp_path_factory.mktemp("runs") / "run", **options)).folder


@pytest.mark.slow
def test_a_run_of_other_instructions_is_close_and_not_equal(folder: Path) -> None:
    """torch's plain instructions in the place of those that this processor has."""
    command = [sys.executable, "-m", "raysim.verify", str(folder), "--all", "--tolerance", "--json"]
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": "default"}
    ended = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert ended.returncode == 3, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["equal"], found["close"]) == (False, True) and found["differences"]
    assert "ATEN_CPU_CAPABILITY: default, in the run not set" in found["explanations"]
    assert [each["round"] for each in found["distances"]] == [1, 2]
    for each in found["distances"]:
        assert 0 < each["equal"] < each["cells"] and not each["off"]
        assert 0 < each["server"]["differing"] <= each["server"]["values"] and 0 < each["server"]["relative"] < 1e-5
        assert each["server"]["median"] <= each["server"]["largest"]


def test_a_forged_value_is_more_than_rounding(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(shutil.copytree(folder, tmp_path / "run"))
    lines = read(path / "rounds.csv")
    place = lines[0].index("loss")
    for number, change in ((1, 1e-7), (2, 1e-3)):
        lines[number][place] = repr(float(lines[number][place]) + change)
    write(path / "rounds.csv", lines)
    made_anew(path)
    assert main([str(path), "--rounds", "1", "--tolerance"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("close, and not equal: all table values agree to their printed digits; rounds.csv (round 1")
    assert "server's state: equal" in out
    assert main([str(path), "--all", "--tolerance"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("differs: rounds.csv (round 1, loss)") and "round 2: " in out and "rounds.csv: loss " in out


@pytest.mark.parametrize("file", ["partition.csv", "summary.json"])
def test_another_split_is_more_than_rounding(
    file: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All values of the rounds agree to their printed digits, so that it counted as close."""
    path = Path(shutil.copytree(folder, tmp_path / "run"))
    lines = read(path / "rounds.csv")
    place = lines[0].index("loss")
    lines[1][place] = repr(float(lines[1][place]) + 1e-7)
    write(path / "rounds.csv", lines)
    if file == "partition.csv":
        rows = read(path / file)
        rows[1][-1] = "7777"
        write(path / file, rows)
    made_anew(path)
    if file == "summary.json":
        summary = json.loads((path / file).read_text())
        (path / file).write_text(json.dumps({**summary, "synthetic": not summary["synthetic"]}))
    assert main([str(path), "--all", "--tolerance"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("differs: ") and f"{file}" in out and "values are equal, 1 more to their printed" in out


def test_it_is_refused_where_nothing_is_computed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--tolerance"]) == 2
    assert "--tolerance: no rounds are computed again. Add --all" in capsys.readouterr().err
    assert main([str(folder), "--all", "--tolerance"]) == 0
