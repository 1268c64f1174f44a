"""A study file, read and checked: every mistake in it is one sentence that names the file and the key."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from raysim.comparison.outcomes import Pairing
from raysim.config import registry
from raysim.config.config_file import OBSERVER, check_calls, check_names, is_trusted, read_plain
from raysim.config.run_config import RunConfig, build
from raysim.errors import ConfigError
from raysim.results.measures import Measure, find
from raysim.studies import grid
from raysim.studies.choosing import Choice, check_measure, check_run
from raysim.studies.curves import Curves
from raysim.studies.entries import Context, explained, file_name, mistake
from raysim.studies.keys import ColumnEntry, RowEntry, StudyFile
from raysim.studies.pictures import HeatMap, Picture
from raysim.studies.places import folder_place, place
from raysim.studies.references import check_references, printed

EXPERIMENT = "engine.experiment"
LONGEST = 255 - len(".failed.csv.partial")
"""Most characters in the name of a cell's file, before its ending."""


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
    folder: Path | None = None
    """The folder of its run, which stays for a cell that goes on with it; None: one of its own, which goes."""

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

    @property
    def is_local(self) -> bool:
        """Whether its clients train alone (method local)."""
        return registry.public_name("method", self.config().method) == "local"


@dataclass(frozen=True)
class Study:
    """A study file, read."""

    path: Path
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
    rows_of: Mapping[str, Collection[str]]
    """Column → the rows that have cells in it."""
    per_seed: tuple[str, ...]
    """Options that every cell sets to its seed."""
    measures: Mapping[Measure, str]
    """Measure → heading."""
    shown: Mapping[tuple[str, str], Measure]
    """(row, name of a measure) → the measure that the row shows in its place."""
    picture: Picture | None
    curves: Curves | None
    heat_map: HeatMap | None
    compare: tuple[Pairing, ...]
    statistics: bool = False
    """Whether differences are tested, and the best rows marked."""
    notes: tuple[str, ...] = ()
    """Sentences on the file that a user should read before its cells are run."""
    latex: Path | None = None
    csv: Path | None = None
    paper: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """(row, column, measure) → the number of a paper, in the unit of the table."""
    choice: Choice | None = None
    resampled: float = 0.0
    """Test samples per training sample, where every seed draws both anew from one pool."""
    folds: int | None = None
    """Where a seed is a fold: how many there are."""
    placed: Mapping[str, Any] = field(default_factory=dict)
    """Options of every cell that say where it is computed, beside those of the file."""

    @property
    def name(self) -> str:
        """Name of the study's file."""
        return self.path.stem

    @property
    def shown_rows(self) -> list[str]:
        """The rows of its table: those of the grid, or those among which one is chosen each as one row."""
        return [*self.choice.rows] if self.choice else [*self.rows]

    @property
    def compared(self) -> list[Measure]:
        """The measures whose differences are asked for."""
        return list(dict.fromkeys(entry.measure for entry in self.compare))

    @property
    def asked_for(self) -> list[tuple[str, Measure]]:
        """Every measure that its tables and pictures show, behind the key of the file that asks for it."""
        return [
            *(("measures", measure) for measure in self.measures),
            *(("compare", measure) for measure in self.compared),
            *(("picture", measure) for measure in (self.picture.measures if self.picture else ())),
            *([("heat_map", self.heat_map.measure)] if self.heat_map else []),
            *([("curves", self.curves.measure)] if self.curves else []),
        ]

    def cells(self) -> Iterator[Cell]:
        """Every run, in the order column, seed, row."""
        base = self.base
        if any(OBSERVER in layer for layer in (base, *self.columns.values(), *self.rows.values())):
            base = {EXPERIMENT: self.title, **base}
        for column, options in self.columns.items():
            for seed in self.seeds[column]:
                for row, method in self.rows.items():
                    if row not in self.rows_of[column]:
                        continue
                    own = self.inside.get((row, column), {})
                    path = self.results / file_name(column) / f"{file_name(row)}-seed{seed}.csv"
                    layers = (base, options, method, own, self.placed)
                    yield Cell(column, row, seed, layers, path, self.per_seed)


def read(path: Path, trusted: Sequence[Path] = ()) -> Study:
    """A study from its YAML file.

    Args:
        trusted: folders whose files may name code (``package.module:Class``) to import.

    Raises:
        ConfigError: it cannot be read, or something in it is unknown, missing, or of a wrong kind.
    """
    file, context = _validated(path, is_trusted(path, trusted))
    measures = {find(name, context.own): given.title or name for name, given in file.measures.items()}
    columns = file.columns or {"": ColumnEntry()}
    rows, notes, choice = _rows(path, file, [own.options for own in columns.values()], trusted)
    check_references(path, file, measures, columns, rows, choice)
    study = Study(
        path,
        file.title,
        folder_place(path, file.results, trusted=context.trusted),
        place(path, file.table, ".md", trusted=context.trusted),
        file.base,
        {name: own.options for name, own in columns.items()},
        {name: own.options for name, own in rows.items()},
        {(row, column): options for row, own in rows.items() for column, options in own.inside.items()},
        {name: tuple(own.seeds or file.seeds) for name, own in columns.items()},
        {name: frozenset(own.rows or rows) for name, own in columns.items()},
        tuple(file.per_seed),
        measures,
        {(row, name): measure for row, own in rows.items() for name, measure in own.shows.items()},
        file.picture,
        file.curves,
        file.heat_map,
        tuple(entry.pairing() for entry in file.compare),
        file.statistics,
        notes,
        file.latex,
        file.csv,
        printed(path, measures, columns, rows),
        choice,
        file.resampled.ratio if file.resampled else 0.0,
        file.resampled.folds if file.resampled else None,
    )
    if study.statistics and not study.compare:
        study = replace(study, compare=_compared(measures, study.shown_rows))
    _check_cells(path, study, trusted)
    return study


def _compared(measures: Collection[Measure], rows: Sequence[str]) -> tuple[Pairing, ...]:
    """The differences of a study that asks for statistics and names none: every row less the first."""
    first, *others = rows
    return tuple(Pairing(tuple(others), first, measure) for measure in measures if measure.best and others)


def _rows(
    path: Path, file: StudyFile, columns: Sequence[Mapping[str, Any]], trusted: Sequence[Path]
) -> tuple[dict[str, RowEntry], tuple[str, ...], Choice | None]:
    """The rows, those of a grid too, notes on them, and whether the best of some is chosen."""
    if file.grid is None:
        return file.rows or {}, (), None
    for layer in (file.base, *columns, *grid.names_in(file.grid)):
        check_names(layer, path, {}, trusted)  # which options a grid has follows from code that it names
    try:
        found = grid.rows_of(file.grid, file.base, columns, file.choose.options if file.choose else ())
    except ConfigError as error:
        raise mistake(path, "grid", str(error)) from error
    choice = Choice(file.choose.measure, found.groups) if file.choose else None
    return {name: RowEntry.model_validate(own) for name, own in found.options.items()}, found.notes, choice


def _validated(path: Path, trusted: bool) -> tuple[StudyFile, Context]:
    """The file's keys and values, each by itself as it must be."""
    context = Context(path, trusted)
    try:
        data = read_plain(path, f"{path}: there is no such file (looked in {Path.cwd()}).")
        return StudyFile.model_validate(data, context=context), context
    except ValidationError as error:
        raise explained(path, error) from error


def _check_cells(path: Path, study: Study, trusted: Sequence[Path]) -> None:
    """ConfigError for code, calls or options that a cell may not have: a mistake in the last row costs no hours."""
    for layer in (study.base, *study.columns.values(), *study.rows.values(), *study.inside.values()):
        check_names(layer, path, {}, trusted)
        check_calls(layer, path, (), trusted, advice=f"add --trust {path.parent}")
    if study.choice is not None:
        check_measure(f"{path}: choose: measure", study.choice.measure)
    checked: set[tuple[str, str]] = set()
    for cell in study.cells():
        if (length := max(len(cell.path.stem), len(file_name(cell.column)))) > LONGEST:
            raise mistake(
                path,
                cell.name,
                f"its file's name has {length} characters. Allowed: {LONGEST}. Choose shorter names of rows and "
                "columns, or a grid of fewer options.",
            )
        if (cell.column, cell.row) in checked and not cell.per_seed:
            continue  # its seed alone is another one
        checked.add((cell.column, cell.row))
        try:
            if both := next((path for path in cell.per_seed for layer in cell.layers if path in layer), None):
                raise ConfigError(f"{both} is each cell's seed (per_seed), and has no other value. Leave one out.")
            config = cell.config()
            if study.choice is not None:
                check_run(config)
        except ConfigError as error:
            raise ConfigError(f"{path}: {_blamed(cell, str(error))}: {error}") from error


def _blamed(cell: Cell, message: str) -> str:
    """The keys of the study file that a config's error speaks of."""
    row, column = f"rows: {cell.row}", f"columns: {cell.column}" if cell.column else "columns"
    places = ("base", column, row, f"{row}: in: {cell.column}", "the command line")
    for key, layer in zip(reversed(places), reversed(cell.layers), strict=True):
        if any(re.search(rf"(?<![\w.]){re.escape(path)}(?!\w)", message) for path in layer):
            return key
    return f"{row}, {column}"
