"""Names that parts of a study file use: rows, columns and measures must be those that the study has."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from raysim.config.nearest import did_you_mean
from raysim.results.measures import WHOLE_RUNS, Measure
from raysim.studies.choosing import Choice
from raysim.studies.entries import file_name, mistake
from raysim.studies.keys import ColumnEntry, RowEntry, StudyFile

COMMA = re.compile(r"\s*[-+−]?\d+,\d")
"""How a number with a comma begins."""


def check_references(
    path: Path,
    file: StudyFile,
    measures: Mapping[Measure, str],
    columns: Mapping[str, ColumnEntry],
    rows: Mapping[str, RowEntry],
    choice: Choice | None,
) -> None:
    """ConfigError where a part of the file names a row, a column or a measure that the study does not have."""
    units = {measure.name: measure.unit for measure in measures}
    named: list[tuple[str, str, str]] = []
    for column, own_column in columns.items():
        if own_column.rows and file.grid is not None:
            raise mistake(path, f"columns: {column}: rows", "a grid has all of its rows in every column.")
        named += [(f"columns: {column}: rows", "row", row) for row in own_column.rows or ()]
    for row, own in rows.items():
        named += [(f"rows: {row}: in", "column", column) for column in own.inside]
        for name, shown in own.shows.items():
            key = f"rows: {row}: shows"
            known(path, key, "measure", name, units)
            if shown.unit != units[name]:
                raise mistake(
                    path, f"{key}: {name}", f"{shown.name} is in {shown.unit}, and the column in {units[name]}."
                )
            if file.curves is not None and file.curves.measure.name == name and shown.how in WHOLE_RUNS:
                raise mistake(path, f"{key}: {name}", f"{shown.name} has one value a run, and curves draw {name}.")
    if file.picture is not None:
        named += [("picture", "row", row) for row in file.picture.rows]
        named += [("picture", "column", column) for column in file.picture.columns]
    for row in file.curves.rows if file.curves else ():
        known(path, "curves", "row", row, choice.rows if choice else rows)
    for number, entry in enumerate(file.compare, start=1):
        key = f"compare: entry {number}"
        for row in (*entry.rows, entry.against):
            known(path, key, "row", row, choice.rows if choice else rows)
        named += [(key, "column", column) for column in entry.columns or ()]
    for key, kind, name in named:
        known(path, key, kind, name, rows if kind == "row" else columns)
    for key, names in (("columns", file.columns or {}), ("rows", rows)):
        _check_file_names(path, key, names)


def known(path: Path, key: str, kind: str, name: str, names: Collection[str]) -> None:
    """ConfigError unless ``name`` is one of the names that the study has."""
    if name not in names:
        raise mistake(path, key, f"no {kind} {name!r}.{did_you_mean(name, names)} There are {', '.join(names)}.")


def _check_file_names(path: Path, key: str, names: Iterable[str]) -> None:
    """ConfigError where two names would share the files of their cells."""
    files: dict[str, str] = {}
    for name in names:
        made = file_name(name)
        if not made or made in files:
            other = f"gives the same file name as {files[made]!r}" if made else "has neither letter nor digit in it"
            raise mistake(path, key, f"the name {name!r} {other} (a to z, 0 to 9 and dots count); choose another.")
        files[made] = name


def printed(
    path: Path, measures: Collection[Measure], columns: Collection[str], rows: Mapping[str, RowEntry]
) -> dict[tuple[str, str, str], str]:
    """A paper's numbers, by their places in the table."""
    found: dict[tuple[str, str, str], str] = {}
    for row, own in rows.items():
        key = f"rows: {row}: paper"
        for column, numbers in own.paper.items() if any(columns) else [("", own.paper)]:
            known(path, key, "column", column, columns)
            if not isinstance(numbers, Mapping):
                raise mistake(path, f"{key}: {column}", "not allowed. Allowed: numbers of a column, {MEASURE: NUMBER}.")
            for name, number in numbers.items():
                known(path, f"{key}: {column}" if column else key, "measure", name, [one.name for one in measures])
                if COMMA.match(str(number)):
                    raise mistake(
                        path,
                        f"{key}: {column}: {name}" if column else f"{key}: {name}",
                        f"{number!r} is not allowed, as its comma may be a decimal one. Allowed: 81.45, or text that "
                        "begins with such a number.",
                    )
                found[row, column, name] = str(number)
    return found
