"""What waits for a GPU: that it says so where there is none, fits raysim's options, and compares bits."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu
from raysim.config.command_line import parse
from raysim.running.simulation import run
from tests.small_runs import LOGISTIC, small_run


def test_without_a_gpu_it_says_so_and_ends_well(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu", "--rows", str(tmp_path / "rows.csv")]
    done = subprocess.run(
        command, cwd=gpu.ROOT, capture_output=True, text=True, env={"CUDA_VISIBLE_DEVICES": "", "PATH": ""}
    )
    assert (done.returncode, done.stdout) == (0, "no GPU\n"), done.stderr
    assert not (tmp_path / "rows.csv").exists()


@pytest.mark.parametrize("name", list(gpu.cases()))
def test_every_case_is_accepted(name: str, tmp_path: Path) -> None:
    config = parse(gpu.cases()[name].words(8, tmp_path)).config
    assert (config.engine.actors, config.engine.gpus_per_client) == (8, 0.125)
    assert config.training.precision == ("bf16" if "bf16" in name else "float32")


def test_runs_that_differ_in_a_bit_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases, rows = {name: gpu.cases()[name] for name in ("W1", "P2")}, tmp_path / "rows.csv"
    monkeypatch.setattr(
        gpu, "run", lambda case, actors: {"digest": f"{case.model} {actors < 4 or case is cases['P2']}"}
    )
    assert not gpu.measure(cases, math.inf, rows, "a GPU")
    with rows.open(newline="") as file:
        found = [(row["case"], row["actors"], row["same_bits"]) for row in csv.DictReader(file)]
    assert [each for each in found if each[0] == "W1"] == [
        ("W1", "1", "True"),
        ("W1", "4", "False"),
        ("W1", "8", "False"),
        ("W1", "2", "False"),
    ]
    assert {same for name, _, same in found if name == "P2"} == {"True"}
    monkeypatch.setattr(gpu, "run", lambda case, actors: {"digest": case.model})
    assert gpu.measure(cases, math.inf, rows, "a GPU")


def test_figures_are_those_of_the_run_and_of_the_looks(tmp_path: Path) -> None:
    run(small_run(tmp_path / "run", LOGISTIC))
    found: dict[str, Any] = gpu.figures(tmp_path / "run", [(0, 300), (50, 900), (70, 800)])
    assert (found["utilization_percent"], found["peak_mib"]) == (60.0, 900)
    assert found["seconds_round"] >= found["seconds_train"] > 0
    assert len(found["digest"]) == 64


def test_the_page_has_the_table_of_the_rows() -> None:
    page = (gpu.ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert "\n".join(gpu.table(gpu.ROOT / "docs" / "results" / "gpu.csv")) in page


def test_a_table_says_where_bits_differ(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(
        "case,actors,seconds_round,utilization_percent,peak_mib,digest\n"
        "A,1,2.0,10,1000,x\nA,4,1.0,40,4000,x\nB,1,2.0,10,1000,x\nB,4,3.0,40,4000,y\nC,1,2.0,10,1000,x\n"
    )
    one = "2.000, 10 %, 1,000"
    assert gpu.table(rows)[2:] == [
        f"| A | {one} | 1.000 (0.50x), 40 %, 4,000 | equal |",
        f"| B | {one} | 3.000 (1.50x), 40 %, 4,000 | **differ** |",
        f"| C | {one} |  |  |",
    ]
