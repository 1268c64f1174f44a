"""The file of a small study, and cells as runs of it would leave them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from raysim.studies import study_file
from raysim.studies.cell_run import End

HERE = ("--workers", "1")
"""All cells in this process, where a test may replace what computes them."""
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


def keep(cell: study_file.Cell, **columns: object) -> None:
    """The rows of a cell as a run of it would leave them."""
    cell.path.parent.mkdir(parents=True, exist_ok=True)
    rows = len(next(column for column in columns.values() if isinstance(column, list)))
    numbers = range(1, rows + 1)
    pd.DataFrame({"round": numbers, "epochs_total": numbers, **columns}).to_csv(cell.path, index=False)


def fake_run(made: list[str]) -> Callable[..., End]:
    """In the place of ``run_cell``: it notes the cell's name, and keeps rows without computing any."""

    def fake(cell: study_file.Cell, *rest: object) -> End:
        made.append(cell.name)
        keep(cell, accuracy=[0.5])
        return End("finished")

    return fake


def study_of(folder: Path, more: str = "") -> study_file.Study:
    """The study, with further keys in its file."""
    path = folder / "small.yaml"
    path.write_text(TEXT + more, encoding="utf-8")
    return study_file.read(path)
