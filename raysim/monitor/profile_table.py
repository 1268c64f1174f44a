"""A run's profile.csv as one small table, for the terminal and the report."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from raysim.errors import ResultsError
from raysim.storage.csv_table import Table

HEADER = ("who", "stage", "phase", "times a round", "seconds a round", "share")
_KEYS = ["lane", "stage", "phase"]


def read(path: Path) -> tuple[str, list[tuple[str, ...]]]:
    """Read a profile: a title, and the cells of each line, in the order in which things happen in a round.

    They are means over rounds; for slots, of the mean slot. The first round is left out where there are others: in it
    everything is loaded and built. A stage that not every round has (evaluate, checkpoint) counts with its share of the
    rounds.

    Raises:
        ResultsError: the file is no such table.
    """
    frame = Table(path).frame()
    if missing := {"round", *_KEYS, "times", "seconds"} - set(frame.columns):
        raise ResultsError(f"{path} is damaged: it has no column {min(missing)}")
    numbers = sorted(set(frame["round"]))
    counted = numbers[1:] or numbers
    count = max(1, len(counted))
    rows = frame[frame["round"].isin(counted)]
    whole = rows["seconds"][rows["lane"] == "driver"].sum() or 1.0
    sums = rows.groupby(_KEYS, sort=False)[["times", "seconds"]].sum()
    lines = [
        (*key, f"{times / count:.4g}", f"{seconds / count:.4f}", f"{100 * seconds / whole:.1f} %")
        for key, times, seconds in sums.itertuples()
    ]
    which = "the only round" if len(numbers) == 1 else f"mean after the first of {len(numbers)} rounds"
    return f"where the time of a round went ({which}, {whole / count:.4g} s)", sorted(lines, key=lambda line: line[0])


def show(path: Path, stream: TextIO) -> None:
    """Print the table of a profile."""
    from rich.console import Console
    from rich.table import Table as PrintedTable

    title, lines = read(path)
    table = PrintedTable(box=None, padding=(0, 2, 0, 0))
    for position, name in enumerate(HEADER):
        table.add_column(name, justify="left" if position < 3 else "right", no_wrap=True)
    for place, line in enumerate(lines):
        if place and line[0] != lines[place - 1][0]:
            table.add_section()
        table.add_row(*line)
    console = Console(file=stream)
    console.print(title, style="bold", soft_wrap=True, highlight=False)  # a table's own title breaks at its width
    console.print(table)
