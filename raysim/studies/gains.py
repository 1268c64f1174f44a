"""The rows of a study whose clients train alone, over which the gains of all others are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from raysim.studies.study_file import Cell, Study


def local_rows(study: Study) -> dict[str, list[str]]:
    """Column → its rows of method local, in the study's order."""
    cells = {(cell.column, cell.row): cell for cell in study.cells()}
    found: dict[str, list[str]] = {}
    for (column, row), cell in cells.items():
        if cell.is_local:
            found.setdefault(column, []).append(row)
    return found


def local_runs(study: Study, kept: Iterable[tuple[Cell, pd.DataFrame]]) -> dict[tuple[str, int], pd.DataFrame]:
    """(column, seed) → the rounds table of the column's first row whose clients train alone, as far as it is there.

    Args:
        kept: the study's cells that are there, each with its rounds table.
    """
    first = {(column, rows[0]) for column, rows in local_rows(study).items()}
    return {(cell.column, cell.seed): run for cell, run in kept if (cell.column, cell.row) in first}


def notes(study: Study) -> list[str]:
    """A sentence for each column with several such rows, if the table has gains: over which of them they are."""
    if not any(measure.how == "gain" for measure in (*study.measures, *study.shown.values(), *study.compared)):
        return []
    several = {column: rows[0] for column, rows in local_rows(study).items() if len(rows) > 1}
    return [
        f"Gains{f' in {column}' if column else ''} are over {row}, the first row of method local."
        for column, row in several.items()
    ]
