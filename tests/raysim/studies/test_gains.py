"""Clients' gains in a study with several rows whose clients train alone."""

from __future__ import annotations

from pathlib import Path

from raysim.studies import gains, study_file, tables
from tests.raysim.small_study import TEXT, keep


def study_of(path: Path, rows: str) -> study_file.Study:
    text = TEXT.replace("rows:", f"rows:\n{rows}").replace("measures: {accuracy: last,", "measures: {local_gain: gain,")
    path.write_text(text.replace("base:", "base:\n  evaluation.each_client: true"), encoding="utf-8")
    study = study_file.read(path)
    for cell in study.cells():
        share = {"Alone": 0.5, "Alone, slow": 0.1}.get(cell.row, 0.8)
        keep(cell, best_accuracy=[share], accuracy=[share], client_accuracies=f"0={share} 1={share}")
    return study


def test_gains_are_over_the_first_local_row_of_a_column_which_is_said(small: Path) -> None:
    slow = "  Alone, slow: {method.name: local, training.learning_rate: 0.001}"
    study = study_of(small, f"  Alone: {{method.name: local}}\n{slow}")
    assert gains.local_rows(study) == {column: ["Alone", "Alone, slow"] for column in study.columns}
    found = tables.values(study, study.measures)
    assert {f"{value:.2f}" for value in found["FedAvg", "MLP", "local_gain"].values()} == {"0.30"}
    assert {f"{value:.2f}" for value in found["Alone, slow", "MLP", "local_gain"].values()} == {"-0.40"}
    page = tables.tables(study)
    assert "\nGains in MLP are over Alone, the first row of method local.\n" in page
    next(study.cells()).path.unlink()  # a seed that is not there yet is not taken from another row
    assert list(tables.values(study, study.measures)["FedAvg", "MLP", "local_gain"]) == [1]


def test_of_one_local_row_and_of_a_table_without_gains_nothing_is_said(small: Path) -> None:
    assert gains.notes(study_of(small, "  Alone: {method.name: local}")) == []
    small.write_text(small.read_text(encoding="utf-8").replace("local_gain: gain, ", ""), encoding="utf-8")
    text = small.read_text(encoding="utf-8").replace("rows:", "rows:\n  Other: {method.name: local}")
    small.write_text(text, encoding="utf-8")
    assert gains.notes(study_file.read(small)) == []
