"""Cells of a study side by side, beside their single times: ``python -m benchmarks.study_cells [--rows FILE]``.

60 cells (2 methods × 5 rates × 6 seeds) of digits. Their single times are taken in one process, one cell after another,
behind one that is not counted and loads what all of them need. The ideal time is their sum, divided by the number of
cores that may be used. It is compared with the whole command that computes the same cells side by side, its start, its
processes and its tables included. The rows of both must be the same bytes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from raysim.comparison import csv_files
from raysim.studies import command, study_file
from raysim.studies.board import Board
from raysim.studies.cell_run import End
from raysim.studies.cells_left import CellsLeft
from raysim.studies.side_by_side import one_after_another
from raysim.studies.study_file import Cell

GRID = ("--grid", "method=fedavg,fedprox", "--grid", "learning_rate=0.01,0.02,0.05,0.1,0.2", "--seeds", "0-5")
RUN = ("--workload", "digits", "--model", "mlp", "--clients", "10")


class Timed(Board):
    """Notes the seconds of every cell."""

    def __init__(self, left: CellsLeft) -> None:
        super().__init__(left, 1, interactive=False)
        self.seconds: list[float] = []
        self._begun = 0.0

    def begins(self, cell: Cell) -> None:
        super().begins(cell)
        self._begun = time.monotonic()

    def ends(self, cell: Cell, end: End) -> None:
        self.seconds.append(time.monotonic() - self._begun)
        super().ends(cell, end)


def words(folder: Path, rounds: int) -> list[str]:
    """The study's command line."""
    return [*GRID, *RUN, "--rounds", str(rounds), "--output", str(folder)]


def single_times(folder: Path, rounds: int, count: int | None = None) -> list[float]:
    """Seconds of the first ``count`` cells (None: all), one after another in this process."""
    path = command.read(words(folder, rounds), "").study
    left = CellsLeft([*study_file.read(path, (folder,)).cells()][:count], longest_first=False)
    with Timed(left) as board:
        one_after_another(left, board, lambda: False, lambda: None)
    return board.seconds


def side_by_side(folder: Path, rounds: int, workers: int) -> float:
    """Seconds of the whole command."""
    begun = time.monotonic()
    line = [sys.executable, "-m", "raysim.study", *words(folder, rounds), "--workers", str(workers)]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def kept(folder: Path) -> dict[str, bytes]:
    """The rows of all cells."""
    return {path.name: path.read_bytes() for path in folder.glob("results/*.csv")}


def row(singles: list[float], seconds: float, workers: int, rounds: int) -> dict[str, float]:
    """The comparison as it is written."""
    ideal = sum(singles) / workers
    return {
        "cells": len(singles),
        "rounds": rounds,
        "workers": workers,
        "single_seconds": round(sum(singles), 1),
        "ideal_seconds": round(ideal, 1),
        "seconds": round(seconds, 1),
        "ratio": round(seconds / ideal, 3),
    }


def sentence(found: dict[str, float]) -> str:
    """The comparison in words."""
    return (
        f"{found['cells']} cells of {found['rounds']} rounds by {found['workers']} workers: {found['seconds']:g} s, "
        f"{found['ratio']:.2f} of the ideal {found['ideal_seconds']:g} s"
    )


def main() -> int:
    """The command line; 1 if the rows differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=40, help="rounds of every cell")
    parser.add_argument("--rows", type=Path, help="CSV file that the comparison is written to")
    options = parser.parse_args()
    workers = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as place:
        one, many = Path(place) / "one", Path(place) / "many"
        single_times(Path(place) / "uncounted", options.rounds, 1)
        singles = single_times(one, options.rounds)
        found = row(singles, side_by_side(many, options.rounds, workers), workers, options.rounds)
        same = kept(one) == kept(many) and len(kept(one)) == len(singles)
    print(sentence(found))
    print("the rows are the same bytes" if same else "THE ROWS DIFFER")
    if same and options.rows is not None:
        options.rows.write_text(csv_files.text([found]), encoding="utf-8")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
