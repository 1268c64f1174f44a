"""A study file, read and checked: every mistake in it is one sentence that names the file and the key."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from raysim.config.config_file import OBSERVER, check_calls, check_names, read_plain
from raysim.config.nearest import did_you_mean
from raysim.config.run_config import RunConfig, build
from raysim.errors import ConfigError
from raysim.report.measures import Measure, find
from raysim.studies import grid
from raysim.studies.curves import Curves
from raysim.studies.differences import Compare
from raysim.studies.entries import Context, explained, file_name, mistake
from raysim.studies.keys import ColumnEntry, RowEntry, StudyFile
from raysim.studies.pictures import HeatMap, Picture
from raysim.studies.places import place

EXPERIMENT = "engine.experiment"


@dataclass(frozen=True)
class Cell:
    """One run of a study, and the file that keeps its result."""

    column: str
    row: str
    seed: int
    layers: tuple[Mapping[str, Any], ...]
    path: Path
    per_seed: tuple[str, ...] = ()
    """Options whose value is the seed, ``workload.fold`` say."""

    @property
    def name(self) -> str:
        """Name of the cell in progress and errors."""
        return f"{self.place} / seed {self.seed}"

    @property
    def place(self) -> str:
        """Its column and row."""
        return " / ".join(filter(None, (self.column, self.row)))

    def config(self) -> RunConfig:
        """The settings of its run."""
        return build([*self.layers, dict.fromkeys(("seed", *self.per_seed), self.seed)])


@dataclass(frozen=True)
class Study:
    """A study file, read."""

    name: str
    title: str
    results: Path
    table: Path
    base: Mapping[str, Any]
    columns: Mapping[str, Mapping[str, Any]]
    """Name → its options."""
    rows: Mapping[str, Mapping[str, Any]]
    """Name → its options."""
    inside: Mapping[tuple[str, str], Mapping[str, Any]]
    """(row, column) → options of the row that hold in this column alone."""
    seeds: Mapping[str, tuple[int, ...]]
    """Column → its seeds."""
    per_seed: tuple[str, ...]
    """Options that every cell sets to its seed."""
    measures: Mapping[Measure, str]
    """Measure → heading."""
    shown: Mapping[tuple[str, str], Measure]
    """(row, name of a measure) → the measure that the row shows in its place."""
    picture: Picture | None
    curves: Curves | None
    heat_map: HeatMap | None
    compare: tuple[Compare, ...]
    statistics: bool = False
    """Whether differences are tested, and the best rows marked."""
    notes: tuple[str, ...] = ()
    """Sentences on the file that a user should read before its cells are run."""

    @property
    def compared(self) -> list[Measure]:
        """The measures whose differences are asked for."""
        return list(dict.fromkeys(entry.measure for entry in self.compare))

    def cells(self) -> Iterator[Cell]:
        """Every run, in the order column, seed, row."""
        base = self.base
        if any(OBSERVER in layer for layer in (base, *self.columns.values(), *self.rows.values())):
            base = {EXPERIMENT: self.title, **base}
        for column, options in self.columns.items():
            for seed in self.seeds[column]:
                for row, method in self.rows.items():
                    own = self.inside.get((row, column), {})
                    path = self.results / file_name(column) / f"{file_name(row)}-seed{seed}.csv"
                    yield Cell(column, row, seed, (base, options, method, own), path, self.per_seed)


def read(path: Path, trusted: Sequence[Path] = ()) -> Study:
    """A study from its YAML file.

    Args:
        trusted: folders whose files may name code (``package.module:Class``) to import.

    Raises:
        ConfigError: it cannot be read, or something in it is unknown, missing, or of a wrong kind.
    """
    file, context = _validated(path)
    measures = {find(name, context.own): given.title or name for name, given in file.measures.items()}
    columns = file.columns or {"": ColumnEntry()}
    rows, notes = _rows(path, file, [own.options for own in columns.values()], trusted)
    _check_references(path, file, measures, columns, rows)
    study = Study(
        path.stem,
        file.title,
        place(path, file.results),
        place(path, file.table, ".md"),
        file.base,
        {name: own.options for name, own in columns.items()},
        {name: own.options for name, own in rows.items()},
        {(row, column): options for row, own in rows.items() for column, options in own.inside.items()},
        {name: tuple(own.seeds or file.seeds) for name, own in columns.items()},
        tuple(file.per_seed),
        measures,
        {(row, name): measure for row, own in rows.items() for name, measure in own.shows.items()},
        file.picture,
        file.curves,
        file.heat_map,
        tuple(file.compare) or _compared(file, measures, list(rows)),
        file.statistics,
        tuple(notes),
    )
    _check_cells(path, study, trusted)
    return study


def _compared(file: StudyFile, measures: Collection[Measure], rows: Sequence[str]) -> tuple[Compare, ...]:
    """The differences of a study that asks for statistics and names none: every row less the first."""
    if not file.statistics or len(rows) < 2:
        return ()
    first, *others = rows
    return tuple(
        Compare.model_construct(rows=others, against=first, measure=measure, columns=None)
        for measure in measures
        if measure.best
    )


def _rows(
    path: Path, file: StudyFile, columns: Sequence[Mapping[str, Any]], trusted: Sequence[Path]
) -> tuple[dict[str, RowEntry], list[str]]:
    """The rows, those of a grid too, and notes on them."""
    if file.grid is None:
        return file.rows or {}, []
    for layer in (file.base, *columns, *grid.names_in(file.grid)):
        check_names(layer, path, {}, trusted)  # which options a grid has follows from code that it names
    try:
        found, notes = grid.rows_of(file.grid, file.base, columns)
    except ConfigError as error:
        raise mistake(path, "grid", str(error)) from error
    return {name: RowEntry.model_validate(own) for name, own in found.items()}, notes


def _validated(path: Path) -> tuple[StudyFile, Context]:
    """The file's keys and values, each by itself as it must be."""
    context = Context(path)
    try:
        data = read_plain(path, f"{path}: there is no such file (looked in {Path.cwd()}).")
        return StudyFile.model_validate(data, context=context), context
    except ValidationError as error:
        raise explained(path, error) from error


def _check_references(
    path: Path,
    file: StudyFile,
    measures: Mapping[Measure, str],
    columns: Mapping[str, ColumnEntry],
    rows: Mapping[str, RowEntry],
) -> None:
    """ConfigError where a part of the file names a row, a column or a measure that the study does not have."""
    units = {measure.name: measure.unit for measure in measures}
    named: list[tuple[str, str, str]] = []
    for row, own in rows.items():
        named += [(f"rows: {row}: in", "column", column) for column in own.inside]
        for name, shown in own.shows.items():
            key = f"rows: {row}: shows"
            known(path, key, "measure", name, units)
            if shown.unit != units[name]:
                raise mistake(
                    path, f"{key}: {name}", f"{shown.name} is in {shown.unit}, and the column in {units[name]}."
                )
    if file.picture is not None:
        named += [("picture", "row", row) for row in file.picture.rows]
        named += [("picture", "column", column) for column in file.picture.columns]
    for number, entry in enumerate(file.compare, start=1):
        key = f"compare: entry {number}"
        named += [(key, "row", row) for row in (*entry.rows, entry.against)]
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


def _check_cells(path: Path, study: Study, trusted: Sequence[Path]) -> None:
    """ConfigError for code, calls or options that a cell may not have: a mistake in the last row costs no hours."""
    for layer in (study.base, *study.columns.values(), *study.rows.values(), *study.inside.values()):
        check_names(layer, path, {}, trusted)
        check_calls(layer, path, (), trusted, advice=f"add --trust {path.parent}")
    for cell in study.cells():
        try:
            cell.config()
        except ConfigError as error:
            raise ConfigError(f"{path}: {_blamed(cell, str(error))}: {error}") from error


def _blamed(cell: Cell, message: str) -> str:
    """The keys of the study file that a config's error speaks of."""
    row, column = f"rows: {cell.row}", f"columns: {cell.column}" if cell.column else "columns"
    places = ("base", column, row, f"{row}: in: {cell.column}")
    for key, layer in zip(reversed(places), reversed(cell.layers), strict=True):
        if any(re.search(rf"(?<![\w.]){re.escape(path)}(?!\w)", message) for path in layer):
            return key
    return f"{row}, {column}"
