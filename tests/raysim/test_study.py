"""A table of runs that grows cell by cell."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from raysim import study
from raysim.errors import ConfigError

TEXT = """
title: Small
results: results
table: page.md
base:
  workload.limit: 200
  workload.clients: 3
  schedule.rounds: 2
  engine.backend: inline
columns:
  MLP: {model.name: mlp}
  Logistic: {model.name: logistic, seeds: [5]}
rows:
  FedAvg: {method.name: fedavg}
  Strong prox: {method.name: fedprox, method.mu: 1.0}
seeds: [0, 1]
measures: {accuracy: last, best_accuracy: best}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_finished_cells_are_skipped_and_the_table_is_their_mean(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def fake(cell: study.Cell) -> None:
        made.append(f"{cell.column}/{cell.row}/{cell.seed}")
        cell.path.parent.mkdir(parents=True, exist_ok=True)
        # Last 0.5 + seed/10, best 0.9; a round without evaluation in between.
        frame = pd.DataFrame({"round": [1, 2, 3], "accuracy": [0.9, float("nan"), 0.5 + cell.seed / 10]})
        frame.to_csv(cell.path, index=False)

    monkeypatch.setattr(study, "run_cell", fake)
    assert study.main([str(path)]) == 0
    assert made == [
        "MLP/FedAvg/0",
        "MLP/Strong prox/0",
        "MLP/FedAvg/1",
        "MLP/Strong prox/1",
        "Logistic/FedAvg/5",
        "Logistic/Strong prox/5",
    ]
    page = (path.parent / "page.md").read_text(encoding="utf-8")
    # Seeds 0 and 1: 50 and 60 %, mean 55, sample standard deviation 7.07; seed 5 alone: 100 %, its best too.
    assert "| FedAvg | 55.00 ± 7.07 (2) | 90.00 ± 0.00 (2) | 100.00 (1) | 100.00 (1) |" in page
    made.clear()
    assert study.main([str(path)]) == 0
    assert made == []
    assert "6 of 6 cells are there" in capsys.readouterr().out


def test_a_cell_is_a_real_run(path: Path) -> None:
    cell = next(study.read(path).cells())
    study.run_cell(cell)
    frame = pd.read_csv(cell.path)
    assert frame["round"].tolist() == [1, 2]
    assert frame["accuracy"].between(0, 1).all()
    assert not [column for column in frame if column.startswith("seconds")]
    assert sorted(entry.name for entry in cell.path.parent.iterdir()) == ["fedavg-seed0.csv", "fedavg-seed0.yaml"]


def test_text_around_the_table_stays(path: Path) -> None:
    page = path.parent / "page.md"
    page.write_text(f"# Mine\nbefore\n{study.BEGIN}\nold\n{study.END}\nafter\n", encoding="utf-8")
    study.write_table(study.read(path))
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Mine\nbefore\n")
    assert text.endswith("after\n")
    assert "old" not in text


def test_mistakes_are_told_before_the_first_run(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study, "run_cell", lambda cell: pytest.fail("ran a cell"))
    path.write_text(TEXT.replace("method.mu: 1.0", "method.my: 1.0"), encoding="utf-8")
    assert study.main([str(path)]) == 1
    assert "method.mu" in capsys.readouterr().err
    path.write_text(TEXT.replace("seeds: [0, 1]", "seed: [0, 1]"), encoding="utf-8")
    with pytest.raises(ConfigError, match="seeds"):
        study.read(path)


def test_a_cell_made_with_other_settings_is_not_mixed_in(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study.run_cell(next(study.read(path).cells()))
    path.write_text(TEXT.replace("schedule.rounds: 2", "schedule.rounds: 3"), encoding="utf-8")
    assert study.main([str(path), "--table-only"]) == 1
    message = capsys.readouterr().err
    assert "fedavg-seed0.csv was made with other settings" in message
    assert "schedule.rounds: 2 → 3" in message


PICTURE = """
picture:
  path: losses.png
  columns: {MLP: small, Logistic: none}
  rows: [FedAvg, Strong prox]
  measures: {local_loss: local loss, accuracy: accuracy}
  label: model
"""


def test_a_picture_shows_the_cells_that_there_are(path: Path) -> None:
    from PIL import Image

    path.write_text(TEXT + PICTURE, encoding="utf-8")
    read = study.read(path)
    cell = next(iter(read.cells()))
    cell.path.parent.mkdir(parents=True)
    pd.DataFrame({"round": [1, 2], "accuracy": [0.1, 0.4], "local_loss": [2.0, 1.5]}).to_csv(cell.path, index=False)
    assert study.finished(read, ["local_loss", "accuracy", "unknown"]) == {
        ("FedAvg", "MLP", "local_loss"): [1.5],
        ("FedAvg", "MLP", "accuracy"): [0.4],
    }
    study.write_table(read)
    assert Image.open(path.parent / "losses.png").size[0] > 500


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rows: [FedAvg, Strong prox]", "rows: [FedAvgg]", "no row 'FedAvgg'"),
        ("{MLP: small, Logistic: none}", "{CNN: x}", "no column 'CNN'"),
        ("label: model", "lable: model", "exactly path, columns"),
    ],
)
def test_a_picture_of_what_the_study_does_not_have_is_refused(path: Path, old: str, new: str, message: str) -> None:
    path.write_text(TEXT + PICTURE.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        study.read(path)


def test_a_row_may_have_settings_of_one_column(path: Path) -> None:
    text = TEXT.replace(
        "Strong prox: {method.name: fedprox, method.mu: 1.0}",
        "Strong prox: {method.name: fedprox, in: {MLP: {method.mu: 2.0}}}",
    )
    path.write_text(text, encoding="utf-8")
    found = {(cell.column, cell.row): cell.config().method for cell in study.read(path).cells()}
    assert found["MLP", "Strong prox"].mu == 2.0 and found["Logistic", "Strong prox"].mu == 0.01
    path.write_text(text.replace("in: {MLP", "in: {CNN"), encoding="utf-8")
    with pytest.raises(ConfigError, match="'CNN', which is no column"):
        study.read(path)


def test_a_cell_that_fails_does_not_cost_the_others(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    def fake(cell: study.Cell) -> None:
        tried.append(cell.row)
        if cell.row == "FedAvg":
            raise ConfigError("diverged")
        cell.path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"round": [1], "accuracy": [0.5]}).to_csv(cell.path, index=False)

    monkeypatch.setattr(study, "run_cell", fake)
    assert study.main([str(path)]) == 1
    assert tried == ["FedAvg", "Strong prox"] * 3
    assert "failed cells" in capsys.readouterr().err
    assert "| Strong prox | 50.00 ± 0.00 (2)" in (path.parent / "page.md").read_text(encoding="utf-8")


def test_the_round_with_the_best_validation_accuracy_is_judged() -> None:
    frame = pd.DataFrame({"accuracy": [0.9, None, 0.6, 0.7], "validation_accuracy": [0.5, None, 0.8, 0.8]})
    assert study.measure(frame, "validated_accuracy") == 0.6
    assert study.measure(frame, "best_validation_accuracy") == 0.8


def test_a_page_with_two_tables_names_the_study_of_each(path: Path) -> None:
    page = path.parent / "page.md"
    first, second = (f"<!-- table {name}: written by raysim.study -->" for name in ("other", "small"))
    page.write_text(f"a\n{first}\nold\n{study.END}\nb\n{second}\nold\n{study.END}\nc\n", encoding="utf-8")
    study.write_table(study.read(path))
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"a\n{first}\nold\n{study.END}\nb\n{second}\n| % |") and text.endswith("c\n")
