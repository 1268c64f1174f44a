"""A table of runs that grows cell by cell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from raysim import portable, study
from raysim.config.run_config import to_yaml
from raysim.studies import cell_run, study_file
from raysim.studies.cell_run import End
from tests.raysim.small_study import HERE, keep


def test_finished_cells_are_skipped_and_the_table_is_their_mean(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def fake(cell: study_file.Cell, *rest: object) -> End:
        made.append(f"{cell.column}/{cell.row}/{cell.seed}")
        # Last 0.5 + seed/10, best 0.9; a round without evaluation in between.
        keep(cell, accuracy=[0.9, float("nan"), 0.5 + cell.seed / 10])
        return End("finished")

    monkeypatch.setattr(cell_run, "run_cell", fake)
    assert study.main([str(small), *HERE]) == 0
    places = (("MLP", 0), ("MLP", 1), ("Logistic", 5))
    assert made == [f"{column}/{row}/{seed}" for column, seed in places for row in ("FedAvg", "Strong prox")]
    page = (small.parent / "page.md").read_text(encoding="utf-8")
    # Seeds 0 and 1: 50 and 60 %, mean 55, sample standard deviation 7.07; seed 5 alone: 100 %, its best too.
    assert "| FedAvg | 55.00 ± 7.07 (2) | 90.00 ± 0.00 (2) | 100.00 (1) | 100.00 (1) |" in page
    made.clear()
    assert study.main([str(small), *HERE]) == 0
    assert made == []
    assert "6 of 6 cells are there" in capsys.readouterr().out


def test_cells_whose_settings_are_not_known_are_told_of(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, *_others = study_file.read(small).cells()
    for cell in (first, second):
        keep(cell, accuracy=[0.5])
    assert study.main([str(small), *HERE, "--table-only"]) == 0
    said = capsys.readouterr().err
    assert "nothing says with which settings 2 cells of the table were made" in said
    assert f"({first.path.with_suffix('.yaml')} first)" in said
    for cell in (first, second):
        cell.path.with_suffix(".yaml").write_text(to_yaml(cell.config()), encoding="utf-8")
    assert study.main([str(small), *HERE, "--table-only"]) == 0
    assert "nothing says" not in capsys.readouterr().err


def test_a_study_of_portable_runs_sets_what_they_need_by_itself(small: Path) -> None:
    """Also where all cells are computed in its own process, whose libraries are loaded by then."""
    text = small.read_text(encoding="utf-8").replace("base:\n", "base:\n  engine.portable: true\n")
    small.write_text(text, encoding="utf-8")
    without = {name: value for name, value in os.environ.items() if name not in portable.VARIABLES}
    command = [sys.executable, "-m", "raysim.study", str(small), *HERE, "--row", "FedAvg", "--column", "Logistic"]
    ended = subprocess.run(command, env=without, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert [path.name for path in small.parent.rglob("*.csv")] == ["fedavg-seed5.csv"]
