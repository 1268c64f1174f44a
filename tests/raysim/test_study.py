"""A table of runs that grows cell by cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from raysim import study
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
