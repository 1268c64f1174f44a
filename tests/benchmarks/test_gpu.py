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
    case, rows = gpu.cases()["W1"], tmp_path / "rows.csv"
    monkeypatch.setattr(gpu, "run", lambda case, actors: {"digest": "one" if actors < 4 else "other"})
    assert not gpu.measure("W1", case, math.inf, rows, "a GPU")
    with rows.open(newline="") as file:
        assert [row["same_bits"] for row in csv.DictReader(file)] == ["True", "True", "False", "False"]
    monkeypatch.setattr(gpu, "run", lambda case, actors: {"digest": "one"})
    assert gpu.measure("W1", case, math.inf, rows, "a GPU")


def test_figures_are_those_of_the_run_and_of_the_looks(tmp_path: Path) -> None:
    run(small_run(tmp_path / "run", LOGISTIC))
    found: dict[str, Any] = gpu.figures(tmp_path / "run", [(0, 300), (50, 900), (70, 800)])
    assert (found["utilization_percent"], found["peak_mib"]) == (60.0, 900)
    assert found["seconds_round"] >= found["seconds_train"] > 0
    assert len(found["digest"]) == 64
