"""The best rows of a grid, chosen on validation data, by numbers made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from raysim import study
from raysim.errors import ConfigError
from raysim.studies import choosing, failures, study_file, tables
from tests.raysim.small_study import keep

TEXT = """
title: Rates
results: results
table: page.md
latex: page.tex
csv: rows.csv
base: {workload.limit: 200, workload.clients: 3, workload.validation_share: 0.2, schedule.rounds: 2}
grid: {method: [fedavg, fedprox], learning_rate: [0.1, 0.2], mu: [0.5, 1.0]}
choose: {options: [learning_rate, mu], measure: validation_accuracy}
seeds: [0, 1]
measures: {accuracy: accuracy}
curves: {path: [curves.svg, curves.pdf], measure: accuracy, against: round}
statistics: true
"""


def _kept(folder: Path) -> study_file.Study:
    """The larger rate is better on test data, the smaller on validation data; the best of fedprox lacks a seed."""
    (folder / "study.yaml").write_text(TEXT, encoding="utf-8")
    found = study_file.read(folder / "study.yaml")
    for cell in found.cells():
        config = cell.config()
        rate, mu = config.training.learning_rate, getattr(config.method, "mu", 0.0)
        if (rate, mu, cell.seed) == (0.1, 1.0, 1):
            cell.path.with_suffix(".failed.csv").write_text("failed,round,reason\n1,2,it diverged\n")
            continue
        value = [0.1, rate + mu / 10 + cell.seed / 100]
        keep(cell, accuracy=value, validation_accuracy=[0.1, 0.9 - rate + mu / 10])
        cell.path.with_suffix(".proof").write_text("0123456789abcdef" * 4 + "\n")
    return found


def test_a_table_has_the_row_that_is_best_on_validation_data(tmp_path: Path) -> None:
    found = _kept(tmp_path)
    assert found.shown_rows == ["fedavg", "fedprox"] and len(failures.failures(found)) == 1
    assert [(one.rows, one.against) for one in found.compare] == [(("fedprox",), "fedavg")]
    tables.write_table(found)
    page = " ".join((tmp_path / "page.md").read_text(encoding="utf-8").split())
    assert "| fedavg | 10.50 ± 0.71 (2) | | fedprox | **15.50 ± 0.71** (2, 1 failed) |" in page
    assert "on validation data: fedavg: learning_rate 0.1; fedprox: learning_rate 0.1, mu 0.5." in page
    assert "than for others: fedavg: 2 settings × 2 seeds × 2 rounds = 8 rounds; fedprox: 4" in page
    assert "| fedprox, learning_rate 0.1, mu 1.0 | 1 | 2 | it diverged |" in page
    assert "Made by `python -m raysim.study study.yaml` in the folder of this page." in page
    assert "fedavg, learning_rate 0.1: 0: 01234567, 1: 01234567." in page
    assert "fedprox & \\textbf{15.50" in (tmp_path / "page.tex").read_text(encoding="utf-8")
    assert len((tmp_path / "rows-runs.csv").read_text().splitlines()) == 1 + 11
    drawn = (tmp_path / "curves.svg").read_bytes()
    assert (tmp_path / "curves.pdf").read_bytes().startswith(b"%PDF") and b"<svg" in drawn
    tables.write_table(found)
    assert drawn == (tmp_path / "curves.svg").read_bytes()


def test_the_smallest_loss_is_chosen_and_failures_of_all_settings_count(tmp_path: Path) -> None:
    losses = TEXT.replace("measure: validation_accuracy", "measure: validation_loss")
    (tmp_path / "study.yaml").write_text(losses, encoding="utf-8")
    found = study_file.read(tmp_path / "study.yaml")
    for cell in found.cells():
        rate, mu = cell.config().training.learning_rate, getattr(cell.config().method, "mu", 0.0)
        if mu == 1.0 and cell.seed == 1:  # of both rates
            cell.path.with_suffix(".failed.csv").write_text("failed,round,reason\n1,2,it diverged\n")
        else:
            keep(cell, accuracy=[0.5], validation_loss=[1 - rate + mu])
    tables.write_table(found)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "fedavg: learning_rate 0.2; fedprox: learning_rate 0.2, mu 0.5." in " ".join(page.split())
    assert "(2, 2 failed)" in page
    assert "in no pair" not in page  # both seeds of the chosen rows are there


def test_a_column_whose_runs_lack_the_measure_is_refused(tmp_path: Path) -> None:
    """Its rows were left empty, without a word."""
    text = TEXT.replace("grid:", "columns: {A: {}, B: {model.name: logistic}}\ngrid:")
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    found = study_file.read(tmp_path / "study.yaml")
    for cell in found.cells():
        keep(cell, accuracy=[0.5], **{f"validation_{'accuracy' if cell.column == 'A' else 'loss'}": [0.4]})
    message = "validation_accuracy: the run B / .* has no column validation_accuracy. .* has: validation_loss"
    with pytest.raises(ConfigError, match=message):
        tables.write_table(found)


def test_equal_budgets_are_said_in_one_sentence() -> None:
    assert choosing.budget({"a": [[20] * 5] * 5, "b": [[20] * 5] * 5}, 1) == (
        "Budget of each row: 5 settings × 5 seeds × 20 rounds = 500 rounds."
    )


def test_columns_of_other_lengths_count_as_what_they_cost() -> None:
    """Two settings with ten rounds in one column and a hundred in another, three seeds each."""
    assert choosing.budget({"a": [[10] * 3 + [100] * 3] * 2}, 2) == (
        "Budget of each row: 2 settings × 6 runs, 660 rounds."
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "measure: validation_accuracy",
            "measure: accuracy",
            "choose: measure accuracy: a search may not choose",
        ),
        ("validation_share: 0.2", "validation_share: 0.0", "base: workload.validation_share: 0, so there is no"),
        (
            "seeds: [0, 1]",
            "seeds: [0, 1]\ncolumns: {A: {}, B: {workload.validation_share: 0.0}}",
            "columns: B: workload.validation_share: 0, so there is no validation data to choose by",
        ),
        (
            "mu: [0.5, 1.0]}",
            "mu: [0.5, 1.0], evaluation.patience: [0, 3]}",
            "rows: fedavg, learning_rate 0.1, patience 3: evaluation.measure: runs of a search may not end early",
        ),
        ("[learning_rate, mu], meas", "[method], meas", "choose: method is no option of the grid whose best value"),
        ("grid: {method: [fedavg, fedprox], learning_rate: [0.1, 0.2], mu: [0.5, 1.0]}", "rows: {A: {}}", "has none"),
        ("latex: page.tex", "latex: page.py", "page.py is not allowed. Allowed: a path that ends in .tex"),
        (
            "curves.svg, curves.pdf",
            "curves.exe",
            "'curves.exe' is not allowed. Allowed: a path that ends in .png",
        ),
        ("statistics: true", "compare: [{rows: [a], against: fedavg, measure: accuracy}]", "no row 'a'"),
    ],
)
def test_what_cannot_be_chosen_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "study.yaml").write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        study_file.read(tmp_path / "study.yaml")
    assert message in str(error.value)


def test_a_choice_is_said_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--grid", "learning_rate=0.1,0.2", "--output", str(tmp_path / "grid"), "--table-only"]
    assert study.main([*words, "--by", "validation_loss"]) == 2
    assert "--by: nothing is chosen; name the options" in capsys.readouterr().err
    more = ["--choose", "learning_rate", "--by", "validation_loss", "--validation_share", "0.2", "--title", "Mine"]
    assert study.main([*words, *more]) == 0
    text = (tmp_path / "grid" / "study.yaml").read_text()
    assert "title: Mine" in text and "options: [learning_rate]\n  measure: validation_loss\n" in text
    assert "# Mine\n" in (tmp_path / "grid" / "table.md").read_text()
