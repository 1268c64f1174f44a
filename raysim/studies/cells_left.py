"""The cells of a study that are left to compute, and their expected costs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from raysim.config.run_config import RunConfig
from raysim.schedule import planned_intervals
from raysim.storage.claims import claim_of, claimant
from raysim.storage.process_lock import is_held
from raysim.studies import failures
from raysim.studies.study_file import Cell

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of processor time in a period, and the period, of the container of this process."""


def usual_workers(configs: Iterable[RunConfig]) -> int:
    """How many cells run side by side unless the user says: one a core that may be used, fewer if they share GPUs."""
    engines = [config.engine for config in configs]
    cores = usable_cores() // max((engine.threads for engine in engines), default=1)
    gpus = max((engine.gpus_per_client for engine in engines), default=0.0)
    return max(1, min(cores, int(1 / gpus)) if gpus else cores)


def usable_cores() -> int:
    """The cores that this process may use: those of its affinity, and no more than a container's share of time."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = QUOTA.read_text(encoding="utf-8").split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no control group of version 2, or "max", no limit
        return cores


class CellsLeft:
    """The cells that are left: given out one by one, those that other processes have claimed last.

    Smaller seeds go first, so that rows are pairs from the first seed on and a study that is cut short can be compared.

    Args:
        cells: in the study's order.
        longest_first: whether cells of the largest expected cost go first within a seed; else they keep their order.
    """

    def __init__(self, cells: Sequence[Cell], *, longest_first: bool) -> None:
        self._left, self._longest_first = list(cells), longest_first
        self._known = {cell.path: failures.made_at(cell) for cell in cells}
        self._work = {cell.path: _work(cell.config()) for cell in cells}
        self._rates: list[float] = []
        """Seconds for each unit of planned work, of every finished cell."""
        self._seconds: dict[tuple[str, str], list[float]] = {}
        self.failed_elsewhere: list[Cell] = []
        """Cells in which another process failed meanwhile."""

    def __len__(self) -> int:
        return len(self._left)

    def failed_at(self, cell: Cell) -> int:
        """When the row of its earlier failure was written; 0: there was none."""
        return self._known[cell.path]

    def take(self, fits: Callable[[Cell], bool] = lambda cell: True) -> Cell | None:
        """The next cell that no other process is at; None if there is none at present, or it does not fit."""
        for cell in sorted(self._left, key=self._place):
            if cell.path.exists():
                self._left.remove(cell)
            elif is_held(claim_of(cell.path)):
                continue
            elif failures.made_at(cell) != self._known[cell.path]:
                self._left.remove(cell)
                self.failed_elsewhere.append(cell)
            elif fits(cell):
                self._left.remove(cell)
                return cell
            else:
                return None
        return None

    def _place(self, cell: Cell) -> tuple[int, float]:
        return cell.seed, -self.expected(cell) if self._longest_first else 0.0

    def put_back(self, cell: Cell) -> None:
        """Another process was quicker, or its process died."""
        self._left.append(cell)

    def took(self, cell: Cell, seconds: float) -> None:
        """A cell was finished in this time, which is expected of the same row and column with other seeds."""
        self._seconds.setdefault((cell.row, cell.column), []).append(seconds)
        self._rates.append(seconds / self._work[cell.path])

    def expected(self, cell: Cell) -> float:
        """The expected cost of a cell, in seconds once a cell was finished.

        It is the mean of finished cells of the same row and column, else from the planned work: local epochs times the
        share of clients in a round. Samples and models are not known before a cell is loaded.
        """
        if measured := self._seconds.get((cell.row, cell.column)):
            return fmean(measured)
        return self._work[cell.path] * (fmean(self._rates) if self._rates else 1.0)

    def seconds_left(self) -> float:
        """The expected seconds of all cells that are left together; NaN before a cell was finished."""
        return sum(map(self.expected, self._left)) if self._rates else math.nan

    def elsewhere(self) -> str:
        """A sentence on the cells that other processes are at."""
        first, more = self._left[0], len(self._left) - 1
        others = f" and {more} more" if more else ""
        process = claimant(first.path)
        return f"waits for {first.name}{others}, at which {process} is at work; Ctrl-C ends this process alone"


def _work(config: RunConfig) -> float:
    return sum(planned_intervals(config)) * config.schedule.sampling_rate
