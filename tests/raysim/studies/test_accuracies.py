"""A study's table says where accuracies of clients' own test sets stand beside those of a common one."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from raysim.studies import accuracies, study_file, tables
from tests.raysim.small_study import TEXT, keep

COMMON = pd.DataFrame({"accuracy": [0.5], "client_accuracy_mean": [0.6]})
OWN = pd.DataFrame({"accuracy": [0.7], "client_accuracy_mean": [0.7]})


def study_of(path: Path, text: str = TEXT) -> study_file.Study:
    path.write_text(text, encoding="utf-8")
    return study_file.read(path)


def starts(notes: list[str]) -> list[str]:
    return [note.partition(" is the mean over clients on their own test sets")[0] for note in notes]


def test_rows_are_named_with_the_columns_in_which_they_are_mixed(small: Path) -> None:
    study = study_of(small)
    everywhere = {
        (row, column): [OWN if row == "Strong prox" else COMMON] for row in study.rows for column in study.columns
    }
    assert starts(accuracies.notes(study, everywhere)) == ["The accuracy of Strong prox"]
    one = everywhere | {("Strong prox", "MLP"): [OWN, COMMON]}  # the accuracy of one seed is of neither kind alone
    assert starts(accuracies.notes(study, one)) == ["The accuracy of Strong prox in Logistic"]
    turned = everywhere | {("FedAvg", "MLP"): [OWN], ("Strong prox", "MLP"): [COMMON]}
    assert starts(accuracies.notes(study, turned)) == [
        "The accuracy of FedAvg in MLP",
        "The accuracy of Strong prox in Logistic",
    ]
    assert accuracies.notes(study, {place: [OWN] for place in everywhere}) == accuracies.notes(study, {}) == []
    on_one_set = study_of(small, TEXT.replace("base:", "base:\n  workload.local_test: global"))
    assert accuracies.notes(on_one_set, everywhere) == []
    assert accuracies.notes(study_of(small, TEXT.replace("{accuracy: last, best_accuracy", "{best_loss")), one) == []


def test_a_row_that_shows_its_clients_accuracy_is_of_their_test_sets(small: Path) -> None:
    shows = "{method.name: fedavg, shows: {accuracy: client_accuracy_mean, best_accuracy: best_client_accuracy_mean}}"
    study = study_of(small, TEXT.replace("{method.name: fedavg}", shows))
    runs = {(row, column): [COMMON] for row in study.rows for column in study.columns}
    assert starts(accuracies.notes(study, runs)) == ["The accuracy of FedAvg"]


def test_the_note_stands_over_the_table_by_the_names_of_its_rows(small: Path) -> None:
    """A grid that chooses has one row a method, whose chosen combination counts."""
    rows = TEXT[TEXT.index("rows:") : TEXT.index("seeds: [0, 1]")]
    grid = "grid: {method: [fedavg, local], learning_rate: [0.1, 0.2]}\n"
    choice = "choose: {options: [learning_rate], measure: validation_accuracy}\n"
    text = TEXT.replace(rows, grid + choice).replace("base:", "base:\n  workload.validation_share: 0.2")
    study = study_of(small, text)
    assert not tables.page_of(study).before
    for cell in study.cells():
        mean = 0.5 if cell.is_local else 0.6
        keep(cell, accuracy=[0.5], client_accuracy_mean=[mean], validation_accuracy=[0.5])
    assert starts([*tables.page_of(study).before]) == ["The accuracy of local"]
