"""A run's profile.csv as one small table, for the terminal and the report."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from raysim.errors import ResultsError

HEADER = ("who", "stage", "phase", "times a round", "seconds a round", "share")


@dataclass(frozen=True)
class Line:
    """One line of the table: means over rounds; for slots, of the mean slot."""

    lane: str
    stage: str
    phase: str
    times: float
    seconds: float
    share: float
    """Share of the round."""

    def texts(self) -> tuple[str, ...]:
        """The cells of this line of the table."""
        return (
            self.lane,
            self.stage,
            self.phase,
            f"{self.times:.4g}",
            f"{self.seconds:.4f}",
            f"{100 * self.share:.1f} %",
        )


def read(path: Path) -> tuple[str, list[Line]]:
    """Read a profile: a title, and the lines in the order in which things happen in a round.

    The first round is left out where there are others: in it everything is loaded and built. A stage that not every
    round has (evaluate, checkpoint) counts with its share of the rounds.

    Raises:
        ResultsError: the file is no such table.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file, strict=True) if row["share"]]
        return _summed(rows)
    except (KeyError, TypeError, ValueError, OverflowError, csv.Error) as error:
        raise ResultsError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _summed(rows: Sequence[Mapping[str, str]]) -> tuple[str, list[Line]]:
    numbers = sorted({int(row["round"]) for row in rows})
    counted = numbers[1:] or numbers
    found: dict[tuple[str, str, str], tuple[float, float]] = {}
    for row in rows:
        if int(row["round"]) in counted:
            key = (row["lane"], row["stage"], row["phase"])
            times, seconds = found.get(key, (0.0, 0.0))
            found[key] = times + int(row["times"]), seconds + float(row["seconds"])
    count = max(1, len(counted))
    whole = sum(seconds for (lane, _, _), (_, seconds) in found.items() if lane == "driver") or 1.0
    lines = [Line(*key, times / count, seconds / count, seconds / whole) for key, (times, seconds) in found.items()]
    which = "the only round" if len(numbers) == 1 else f"mean after the first of {len(numbers)} rounds"
    return f"where the time of a round went ({which}, {whole / count:.4g} s)", sorted(lines, key=lambda x: x.lane)


def show(path: Path, stream: TextIO) -> None:
    """Print the table of a profile."""
    from rich.console import Console
    from rich.table import Table

    title, lines = read(path)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for position, name in enumerate(HEADER):
        table.add_column(name, justify="left" if position < 3 else "right", no_wrap=True)
    for place, line in enumerate(lines):
        if place and line.lane != lines[place - 1].lane:
            table.add_section()
        table.add_row(*line.texts())
    console = Console(file=stream)
    console.print(title, style="bold", soft_wrap=True, highlight=False)  # a table's own title breaks at its width
    console.print(table)
