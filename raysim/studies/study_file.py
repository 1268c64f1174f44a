"""A study file, read and checked: every mistake in it is one sentence that names the file and the key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysim.config.config_file import check_calls, check_names
from raysim.config.run_config import RunConfig, build
from raysim.errors import ConfigError
from raysim.report.measures import Measure
from raysim.studies import curves, differences, pictures
from raysim.studies.curves import Curves
from raysim.studies.differences import Compare
from raysim.studies.pictures import HeatMap, Picture
from raysim.studies.reader import KEYS, Reader, file_name

OPTIONAL = ("picture", "curves", "heat_map", "compare")


@dataclass(frozen=True)
class Cell:
    """One run of a study, and the file that keeps its result."""

    column: str
    row: str
    seed: int
    layers: tuple[Mapping[str, Any], ...]
    path: Path

    @property
    def name(self) -> str:
        """What it is called on the way."""
        return f"{self.column} / {self.row} / seed {self.seed}"

    def config(self) -> RunConfig:
        """The settings of its run."""
        return build([*self.layers, {"seed": self.seed}])


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
    measures: Mapping[Measure, str]
    """Measure → heading."""
    shown: Mapping[tuple[str, str], Measure]
    """(row, name of a measure) → the measure that the row shows in its place."""
    picture: Picture | None
    curves: Curves | None
    heat_map: HeatMap | None
    compare: tuple[Compare, ...]

    @property
    def compared(self) -> list[Measure]:
        """The measures whose differences are asked for."""
        return list(dict.fromkeys(entry.measure for entry in self.compare))

    def cells(self) -> Iterator[Cell]:
        """Every run, in the order column, seed, row."""
        for column, options in self.columns.items():
            for seed in self.seeds[column]:
                for row, method in self.rows.items():
                    own = self.inside.get((row, column), {})
                    path = self.results / file_name(column) / f"{file_name(row)}-seed{seed}.csv"
                    yield Cell(column, row, seed, (self.base, options, method, own), path)


def read(path: Path, trusted: Sequence[Path] = ()) -> Study:
    """A study from its YAML file.

    Args:
        trusted: folders whose files may name code (``package.module:Class``) to import.

    Raises:
        ConfigError: it cannot be read, or something in it is unknown, missing, or of a wrong kind.
    """
    reader = Reader(path)
    data = reader.data
    reader.known(data, (*KEYS, *OPTIONAL), "a study")
    missing = [key for key in KEYS if key not in data]
    if missing:
        raise reader.error("", f"{', '.join(missing)} is missing. A study has {', '.join(KEYS)}.")
    columns = reader.mappings("columns")
    rows = reader.mappings("rows")
    measures = reader.measures("measures", data["measures"])
    shown = {
        (row, name): measure
        for row, settings in rows.items()
        for name, measure in reader.shown(f"rows: {row}: shows", settings.get("shows", {}), measures).items()
    }
    usual = reader.seeds("seeds", data["seeds"])
    seeds = {
        c: reader.seeds(f"columns: {c}: seeds", own["seeds"]) if "seeds" in own else usual for c, own in columns.items()
    }
    inside: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row, settings in rows.items():
        for column, own in reader.mapping(f"rows: {row}: in", settings.get("in", {})).items():
            if column not in columns:
                raise reader.error(
                    f"rows: {row}: in", f"settings in {column!r}, which is no column. Columns: {', '.join(columns)}."
                )
            inside[row, column] = reader.options(f"rows: {row}: in: {column}", own)
    for kind, names in (("columns", columns), ("rows", rows)):
        reader.distinct(kind, list(names))
    study = Study(
        path.stem,
        reader.text("title"),
        reader.beside(reader.text("results")),
        reader.beside(reader.text("table"), ".md"),
        reader.options("base", data["base"]),
        {name: reader.options(f"columns: {name}", own, but=("seeds",)) for name, own in columns.items()},
        {name: reader.options(f"rows: {name}", own, but=("in", "shows")) for name, own in rows.items()},
        inside,
        seeds,
        measures,
        shown,
        pictures.read(reader, list(rows), list(columns)),
        curves.read(reader),
        reader.picture("heat_map", HeatMap),
        differences.read(reader, list(rows), list(columns)),
    )
    for layer in (study.base, *study.columns.values(), *study.rows.values(), *inside.values()):
        check_names(layer, path, {}, trusted)
        check_calls(layer, path, (), trusted, advice=f"add --trust {path.parent}")
    for cell in study.cells():  # a mistake in the last row is told before the first cell's hours
        try:
            cell.config()
        except ConfigError as error:
            raise ConfigError(f"{path}: {_blamed(cell, str(error))}: {error}") from error
    return study


def _blamed(cell: Cell, message: str) -> str:
    """The keys of the study file that a config's error speaks of."""
    row, column = f"rows: {cell.row}", f"columns: {cell.column}"
    places = ("base", column, row, f"{row}: in: {cell.column}")
    for place, layer in zip(reversed(places), reversed(cell.layers), strict=True):
        if any(re.search(rf"(?<![\w.]){re.escape(path)}(?!\w)", message) for path in layer):
            return place
    return f"{row}, {column}"
