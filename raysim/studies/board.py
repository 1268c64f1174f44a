"""The cells of a study while they are computed: a live table on a terminal, else lines."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from raysim import units
from raysim.monitor.live_display import LiveDisplay
from raysim.studies.cell_report import News
from raysim.studies.cell_run import End
from raysim.studies.cells_left import CellsLeft
from raysim.studies.study_file import Cell

if TYPE_CHECKING:
    from rich.console import Group

WORDS = {"finished": "finished", "stopped": "stopped, its last whole round is saved"}


@dataclass
class _Line:
    """A cell under way."""

    cell: Cell
    begun: float = field(default_factory=time.monotonic)
    news: News = field(default_factory=News)
    heard: float = field(default_factory=time.monotonic)
    introduced: bool = False

    def seconds_left(self, expected: float) -> float:
        """Seconds that are left, by the cell's rounds so far; before the first, those that are expected of it."""
        known = expected if math.isnan(self.news.seconds_left) else self.news.seconds_left
        return max(0.0, known - (time.monotonic() - self.heard))


class Board(LiveDisplay):
    """A context manager that shows the cells under way.

    Args:
        left: the cells that have not begun.
        workers: how many run side by side.
        stream: of the live table, standard error by default; lines go to standard output, failures to standard error.
        interactive: live table or lines; by default a table if the stream is a terminal.
    """

    def __init__(
        self, left: CellsLeft, workers: int, stream: TextIO | None = None, interactive: bool | None = None
    ) -> None:
        super().__init__(stream, interactive)
        self._left, self._workers, self._all = left, workers, len(left)
        self._lines: dict[str, _Line] = {}
        self._failed = 0
        self._reasons: dict[str, str] = {}
        """Reason of a failure → the first cell that failed for it."""

    def begins(self, cell: Cell) -> None:
        """A cell is to be begun, or gone on with; another process may be quicker."""
        self._lines[cell.name] = _Line(cell)

    def hears(self, cell: Cell, news: News) -> None:
        """A cell has begun, a round of it has ended, or there is a note on it."""
        self._introduce(self._lines[cell.name])
        if news.note:
            if self._live is not None:
                self.says(f"{cell.name}: {news.note}")
            return
        self._lines[cell.name].news, self._lines[cell.name].heard = news, time.monotonic()

    def ends(self, cell: Cell, end: End) -> None:
        """A cell is finished, stopped, or has failed; of one that another process has, nothing is said."""
        line = self._lines.pop(cell.name)
        if end.kind in ("failed", *WORDS):
            self._introduce(line)
        if end.kind == "failed":
            self._failed += 1
            first = self._reasons.setdefault(end.reason, cell.name)
            again = f"it failed for the same reason as {first}"
            self.says(f"{cell.name}: {end.reason if first == cell.name else again}", error=True)
        elif end.kind in WORDS:
            accuracy = "" if math.isnan(line.news.accuracy) else f", accuracy {line.news.accuracy:.4f}"
            took = units.duration(time.monotonic() - line.begun)
            again = ""
            if end.reason and self._live is None:  # above a live table it was said as a note
                again = f" (begun again from round 1: {end.reason.splitlines()[0]})"
            self.says(f"{cell.name}: {WORDS[end.kind]}{accuracy}, {took}{again}")

    def _introduce(self, line: _Line) -> None:
        """Say once that a cell has begun, where there is no table."""
        if self._live is None and not line.introduced:
            print(line.cell.name, flush=True)
        line.introduced = True

    def says(self, text: str, *, error: bool = False) -> None:
        """Print a line, above the live table where there is one."""
        if not self._printed_above(text):
            print(text, file=sys.stderr if error else sys.stdout, flush=True)

    def display(self) -> Group:
        """The live table in its present state, as a rich renderable."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0))
        table.add_column("cell")
        for heading in ("round", "accuracy", "time left"):
            table.add_column(heading, justify="right", no_wrap=True)
        for name, line in self._lines.items():
            news = line.news
            accuracy = "" if math.isnan(news.accuracy) else f"{news.accuracy:.4f}"
            left = "" if math.isnan(news.seconds_left) else units.duration(line.seconds_left(0.0))
            table.add_row(name, f"{news.round}/{news.rounds}" if news.rounds else "", accuracy, left)
        return Group(table, Text(self.summary()))

    def summary(self) -> str:
        """How many cells are done, under way and left, and how long they will take."""
        done = self._all - len(self._left) - len(self._lines)
        parts = [f"{done} of {self._all} cells done", f"{len(self._lines)} under way"]
        if self._failed:
            parts.insert(1, f"{self._failed} failed")
        under_way = sum(line.seconds_left(self._left.expected(line.cell)) for line in self._lines.values())
        seconds = (self._left.seconds_left() + under_way) / self._workers
        return ", ".join([*parts, *([] if math.isnan(seconds) else [f"{units.duration(seconds)} left"])])
