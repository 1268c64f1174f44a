"""A search over two options whose cells are made without a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from raysim.results.measures import find
from raysim.search.halving import Bracket
from raysim.search.space import Axis
from raysim.search.trials import Search
from raysim.studies.study_file import Cell

BASE = {"method.name": "fedprox", "model.name": "logistic", "schedule.rounds": 3, "engine.backend": "inline"}
AXES = (
    Axis("method.mu", low=0.001, high=1.0, log=True),
    Axis("training.optimizer", choices=("sgd", "adam")),
    Axis("training.batch_size", low=8, high=64, whole=True),
)


def search_in(
    folder: Path, measure: str = "validation_accuracy", trials: int = 10, bracket: Bracket | None = None
) -> Search:
    """A search in batches of four."""
    return Search(BASE, AXES, trials, 4, (0, 1), find(measure), 0, folder / "results", bracket)


def make(cell: Cell) -> None:
    """The row of a cell, whose accuracy follows from its settings; that of a large mu is a failure.

    Small batches begin well and gain little later, so that another trial is best at each rung.
    """
    config = cell.config()
    mu, adam = config.method.mu, config.training.optimizer == "adam"
    cell.path.parent.mkdir(parents=True, exist_ok=True)
    if cell.folder is not None:
        cell.folder.mkdir(exist_ok=True)
    if mu > 0.5:
        text = "failed,round,reason\n1,2,it diverged\n"
        cell.path.with_suffix(".failed.csv").write_text(text)
        return
    rounds = np.arange(1, config.schedule.rounds + 1)
    gain = config.training.batch_size / 100 * np.log(rounds)
    accuracy = 0.5 - abs(mu - 0.1) / 5 - 0.1 * adam - config.training.batch_size / 200 + gain + config.seed / 100
    pd.DataFrame({"round": rounds, "epochs_total": rounds, "validation_accuracy": accuracy}).to_csv(
        cell.path, index=False
    )


def in_order(key: Callable[[Cell], object]) -> Callable[[Sequence[Cell]], dict[str, str]]:
    """Makes all cells, those with the smallest ``key`` first."""

    def compute(cells: Sequence[Cell]) -> dict[str, str]:
        for cell in sorted(cells, key=key):  # type: ignore[arg-type]
            make(cell)
        return {}

    return compute


def by_workers(count: int) -> Callable[[Sequence[Cell]], dict[str, str]]:
    """Makes all cells in the order in which this number of workers, each as slow as it may be, ends them."""

    def compute(cells: Sequence[Cell]) -> dict[str, str]:
        free, ends = [0.0] * count, dict[str, float]()
        for number, cell in enumerate(cells):
            place = free.index(min(free))
            free[place] += 1 + number * 7 % 5
            ends[cell.name] = free[place]
        return in_order(lambda cell: ends[cell.name])(cells)

    return compute
