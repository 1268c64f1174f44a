"""Cells of a study that failed: one row each with round and reason, ``ROW-seedN.failed.csv`` in the place of its table.

A run that diverges is a result too; without its row a table of the others would flatter the method.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raysim.comparison.table import Entry, Head, Table
from raysim.errors import ConfigError
from raysim.storage.atomic_files import write_atomically
from raysim.storage.folder_files import without_controls
from raysim.studies.places import text_of

if TYPE_CHECKING:
    from raysim.studies.study_file import Cell, Study

NAMED = 3
"""Most cells that are named for the same failure."""
COLUMNS = ("failed", "round", "reason")


@dataclass(frozen=True)
class Failure:
    """A cell that ended with an error."""

    cell: Cell
    round: int
    """The round in which it ended; 1 if none was finished."""
    reason: str
    """The first line of the error's message."""


def place(cell: Cell) -> Path:
    """The file of a cell's failure."""
    return cell.path.with_suffix(".failed.csv")


def made_at(cell: Cell) -> int:
    """When the row of its failure was written, in nanoseconds; 0 if there is none."""
    try:
        return place(cell).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def keep(cell: Cell, run_folder: Path, reason: str) -> None:
    """Write the row of a cell whose run failed; the round follows from the rounds that its folder has."""
    rounds = run_folder / "rounds.csv"
    finished = max(0, len(rounds.read_text(encoding="utf-8").splitlines()) - 1) if rounds.exists() else 0
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, (1, finished + 1, reason.partition("\n")[0])])
    write_atomically(place(cell), text.getvalue().encode())


def failures(study: Study) -> list[Failure]:
    """The cells that failed and were not made since, in the study's order."""
    found = []
    for cell in study.cells():
        if place(cell).exists() and not cell.path.exists():
            try:
                found.append(read(cell))
            except ConfigError:
                if place(cell).exists():  # else another process has made the cell meanwhile
                    raise
    return found


def read(cell: Cell) -> Failure:
    """The failure of a cell that has the row of one.

    Raises:
        ConfigError: what is there is no such row.
    """
    try:
        row = next(csv.DictReader(io.StringIO(text_of(place(cell)) or "", newline="")), {})
        return Failure(cell, int(row["round"]), without_controls(row["reason"]))
    except (csv.Error, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{place(cell)}: it is no row of a failed cell. Remove it to run the cell again.") from error


def sentences(failed: Mapping[str, str]) -> list[str]:
    """A sentence for each reason, with the cells that failed for it: of many their number and the first few names.

    Args:
        failed: name of a cell → why it failed.
    """
    groups: dict[str, list[str]] = {}
    for name, reason in failed.items():
        groups.setdefault(reason, []).append(name)
    many = {reason: f"{len(names)} cells ({_first(names)})" for reason, names in groups.items() if len(names) > NAMED}
    return [f"{many.get(reason) or _first(names)}: {reason}" for reason, names in groups.items()]


def table(failed: list[Failure]) -> Table:
    """The table of failed cells; many that failed in the same round for the same reason share a row."""
    groups: dict[tuple[int, str], list[Failure]] = {}
    for one in failed:
        groups.setdefault((one.round, one.reason), []).append(one)
    rows = list[tuple[str, tuple[Entry, ...]]]()
    for (round, reason), group in groups.items():
        if len(group) > NAMED:
            places, seeds = _first(one.cell.place for one in group), _first(str(one.cell.seed) for one in group)
            shown = [(f"{len(group)} cells: {places}", seeds)]
        else:
            shown = [(one.cell.place, str(one.cell.seed)) for one in group]
        rows += [(place, (Entry(seed), Entry(str(round)), Entry(reason))) for place, seed in shown]
    records = tuple(
        {
            "row": one.cell.row,
            "column": one.cell.column,
            "seed": one.cell.seed,
            "round": one.round,
            "reason": one.reason,
        }
        for one in failed
    )
    heads = tuple(Head("", text) for text in ("seed", "round", "reason"))
    return Table("failed", "failed", heads, tuple(rows), records)


def _first(names: Iterable[str]) -> str:
    """The different names, in one line; of many the first few."""
    distinct = [*dict.fromkeys(names)]
    return ", ".join(distinct if len(distinct) <= NAMED else [*distinct[:NAMED], "…"])
