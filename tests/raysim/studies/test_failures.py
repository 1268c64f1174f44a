"""Cells that fail: their rows, their reasons, and the others."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from raysim import study
from raysim.config.run_config import RunConfig
from raysim.driver.outcome import Outcome
from raysim.studies import cell_run, failures, study_file
from raysim.studies.cell_run import End
from raysim.workloads.errors import WorkloadError
from tests.raysim.small_study import HERE, TEXT, keep


def test_a_cell_that_fails_does_not_cost_the_others(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    def fake(cell: study_file.Cell, *rest: object) -> End:
        tried.append(cell.row)
        if cell.row == "FedAvg":
            return End("failed", "diverged")
        keep(cell, accuracy=[0.5])
        return End("finished")

    monkeypatch.setattr(cell_run, "run_cell", fake)
    assert study.main([str(small), *HERE]) == 1
    assert tried == ["FedAvg", "Strong prox"] * 3
    assert "failed cells" in capsys.readouterr().err
    assert "| Strong prox | 50.00 ± 0.00 (2)" in (small.parent / "page.md").read_text(encoding="utf-8")


def test_a_cell_that_fails_leaves_a_row_with_round_and_reason_until_it_succeeds(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two rounds were written when the third broke; the table counts it and says why."""

    def broken(config: RunConfig, folder: Path, *rest: object, **more: object) -> Outcome:
        (folder / "rounds.csv").write_text("round,accuracy\n1,0.1\n2,0.2\n", encoding="utf-8")
        return Outcome("failed", "round 3, client 1: the update is not finite | in head.weight\nTraceback: 7")

    first, *others = study_file.read(small).cells()
    for cell in others:
        keep(cell, accuracy=[0.5])
    with monkeypatch.context() as patch:
        patch.setattr("raysim.running.simulation.execute", broken)
        assert study.main([str(small), *HERE]) == 1
    failure = first.path.with_suffix(".failed.csv")
    assert not first.path.exists() and first.path.with_suffix(".yaml").exists()
    reason = "round 3, client 1: the update is not finite | in head.weight"
    assert pd.read_csv(failure).to_dict("records") == [{"failed": 1, "round": 3, "reason": reason}]
    page = (small.parent / "page.md").read_text(encoding="utf-8")
    assert "| FedAvg | 50.00 (1, 1 failed) | 50.00 (1, 1 failed) | 50.00 (1) |" in page
    shown = reason.replace("|", "\\|")
    assert f"| failed | seed | round | reason |\n|---|---|---|---|\n| MLP / FedAvg | 0 | 3 | {shown} |\n" in page
    capsys.readouterr()
    small.write_text(TEXT.replace("schedule.rounds: 2", "schedule.rounds: 1"), encoding="utf-8")
    assert study.main([str(small), "--table-only"]) == 2
    assert f"{failure} was made with other settings" in capsys.readouterr().err
    small.write_text(TEXT, encoding="utf-8")
    assert study.main([str(small), *HERE]) == 0
    assert "5 of 6 cells are there, 1 failed" in capsys.readouterr().out
    assert first.path.exists() and not failure.exists()
    assert "failed" not in (small.parent / "page.md").read_text(encoding="utf-8")


def test_many_cells_that_fail_alike_are_told_once(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six cells gave the same long sentence twelve times, and a seventh could not be seen among them."""
    small.write_text(TEXT.replace("rows:", "rows:\n  Other: {method.name: local}"), encoding="utf-8")

    def fake(cell: study_file.Cell, *rest: object) -> End:
        reason = "it diverged" if cell.row == "Other" and cell.seed else "no memory"
        cell_run.keep_failure(cell, reason)
        return End("failed", reason)

    monkeypatch.setattr(cell_run, "run_cell", fake)
    assert study.main([str(small), *HERE]) == 1
    said = capsys.readouterr().err
    assert said.count("no memory") == 2 and said.count("it diverged") == 2
    assert "\nMLP / FedAvg / seed 0: it failed for the same reason as MLP / Other / seed 0\n" in said
    assert "\n7 cells (MLP / Other / seed 0, MLP / FedAvg / seed 0, MLP / Strong prox / seed 0, …): no memory\n" in said
    assert "\nMLP / Other / seed 1, Logistic / Other / seed 5: it diverged\n" in said
    page = (small.parent / "page.md").read_text(encoding="utf-8")
    row = "| 7 cells: MLP / Other, MLP / FedAvg, MLP / Strong prox, … | 0, 1, 5 | 1 | no memory |"
    assert row in page and "| MLP / Other | 1 | 1 | it diverged |\n| Logistic / Other | 5 | 1 | it diverged |" in page
    assert len(failures.failures(study_file.read(small))) == 9


def test_a_cell_of_which_nothing_was_computed_failed_in_its_first_round(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(config: RunConfig, *rest: object) -> Path:
        raise WorkloadError("no such file")

    monkeypatch.setattr("raysim.running.open_run.prepare", refused)
    assert study.main([str(small), *HERE]) == 1
    page = (small.parent / "page.md").read_text(encoding="utf-8")
    places = "6 cells: MLP / FedAvg, MLP / Strong prox, Logistic / FedAvg, …"
    assert "| FedAvg | (0, 2 failed) |" in page and f"| {places} | 0, 1, 5 | 1 | no such file |" in page
