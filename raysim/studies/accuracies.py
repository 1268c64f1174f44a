"""Accuracies on clients' own test sets and on a common one, beside each other in a study's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from raysim.comparison.accuracies import about_mixed, comparable, is_by_clients, mixed
from raysim.results.measures import Measure

if TYPE_CHECKING:
    import pandas as pd

    from raysim.studies.study_file import Study


def notes(study: Study, runs: Mapping[tuple[str, str], Sequence[pd.DataFrame]]) -> list[str]:
    """Sentences on the columns of a table that have accuracies of both kinds, one for columns with the same rows.

    Args:
        runs: (row, column) → the rounds tables behind the table's cells.
    """
    columns: dict[tuple[str, ...], dict[str, None]] = {}
    for measure in study.measures:
        for name in study.columns if measure.column == "accuracy" else ():
            rows = {
                row: all(_is_by_clients(study, measure, row, run) for run in own)
                for (row, column), own in runs.items()
                if column == name
            }
            if (by_clients := mixed(rows)) and not comparable(_workloads(study, name)):
                columns.setdefault(tuple(by_clients), {})[name] = None
    every = len(columns) == 1
    return [
        about_mixed(rows, "" if every and len(own) == len(study.columns) else ", ".join(own))
        for rows, own in columns.items()
    ]


def _workloads(study: Study, column: str) -> set[tuple[str, str]]:
    """Class and ``local_test`` of each row's workload in a column."""
    cells = {cell.row: cell for cell in study.cells() if cell.column == column}
    found = [cell.config().workload for cell in cells.values()]
    return {(type(workload).__name__, str(getattr(workload, "local_test", ""))) for workload in found}


def _is_by_clients(study: Study, measure: Measure, row: str, run: pd.DataFrame) -> bool:
    """Whether what a row shows as its accuracy is a mean over clients."""
    shown = study.shown.get((row, measure.name), measure)
    return is_by_clients(run) if shown.column == "accuracy" else "client_accuracy" in shown.column
