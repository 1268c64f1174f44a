"""A study file, read and checked: every mistake in it is one sentence that names the file and the key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from raysim.config.config_file import check_names, read_plain
from raysim.config.nearest import did_you_mean
from raysim.config.run_config import RunConfig, build, flatten
from raysim.errors import ConfigError
from raysim.report import study_curves, study_heat_map, study_plot
from raysim.report.measures import Best, Column, Measure, find
from raysim.units import UNITS

KEYS = ("title", "results", "table", "base", "columns", "rows", "seeds", "measures")
OPTIONAL = ("picture", "curves", "heat_map")


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
    picture: study_plot.Picture | None
    curves: study_curves.Curves | None
    heat_map: study_heat_map.HeatMap | None

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
    reader = _Reader(path)
    data = reader.data
    reader.known(data, (*KEYS, *OPTIONAL), "a study")
    missing = [key for key in KEYS if key not in data]
    if missing:
        raise reader.error("", f"{', '.join(missing)} is missing. A study has {', '.join(KEYS)}.")
    columns = reader.mappings("columns")
    rows = reader.mappings("rows")
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
    measures, own_columns = reader.measures("measures", data["measures"])
    study = Study(
        path.stem,
        reader.text("title"),
        (path.parent / reader.text("results")).resolve(),
        (path.parent / reader.text("table")).resolve(),
        reader.options("base", data["base"]),
        {name: reader.options(f"columns: {name}", own, but="seeds") for name, own in columns.items()},
        {name: reader.options(f"rows: {name}", own, but="in") for name, own in rows.items()},
        inside,
        seeds,
        measures,
        study_plot.read(data["picture"], path, list(rows), list(columns), own_columns) if "picture" in data else None,
        study_curves.read(data["curves"], path, own_columns) if "curves" in data else None,
        study_heat_map.read(data["heat_map"], path, own_columns) if "heat_map" in data else None,
    )
    for layer in (study.base, *study.columns.values(), *study.rows.values(), *inside.values()):
        check_names(layer, path, {}, trusted)
    for cell in study.cells():  # a mistake in the last row is told before the first cell's hours
        try:
            cell.config()
        except ConfigError as error:
            raise ConfigError(f"{path}: {_blamed(study, cell, str(error))}: {error}") from error
    return study


def file_name(text: str) -> str:
    """A row's or column's name as part of a file's name."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def _blamed(study: Study, cell: Cell, message: str) -> str:
    """The keys of the study file that a config's error speaks of."""
    layers = {
        f"rows: {cell.row}: in: {cell.column}": study.inside.get((cell.row, cell.column), {}),
        f"rows: {cell.row}": study.rows[cell.row],
        f"columns: {cell.column}": study.columns[cell.column],
        "base": study.base,
    }
    for place, layer in layers.items():
        if any(re.search(rf"(?<![\w.]){re.escape(path)}(?!\w)", message) for path in layer):
            return place
    return f"rows: {cell.row}, columns: {cell.column}"


class _Reader:
    """Takes values out of a study file, each checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        data = read_plain(path, f"{path}: there is no such file (looked in {Path.cwd()}).")
        if not isinstance(data, dict):
            raise ConfigError(f"{path} is no study: it must hold {', '.join(KEYS)}.")
        self.data: dict[Any, Any] = data

    def error(self, key: str, text: str) -> ConfigError:
        return ConfigError(f"{self.path}: {key}: {text}" if key else f"{self.path}: {text}")

    def known(self, data: Mapping[Any, Any], keys: Sequence[str], what: str, place: str = "") -> None:
        for key in data:
            if key not in keys:
                hint = did_you_mean(str(key), keys)
                raise self.error(place, f"unknown key {key}.{hint} Keys of {what}: {', '.join(keys)}.")

    def text(self, key: str) -> str:
        value = self.data[key]
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"{value!r} is not allowed. Allowed: text.")
        return value

    def mapping(self, key: str, value: Any) -> Mapping[str, Any]:
        """Names, each with what belongs to it."""
        if not isinstance(value, Mapping):
            raise self.error(key, f"{value!r} is not allowed. Allowed: names with values below, NAME: VALUE.")
        for name in value:
            if not isinstance(name, str):
                raise self.error(key, f"the name {name!r} is no text; put it into quotes.")
        return value

    def mappings(self, key: str) -> dict[str, Mapping[str, Any]]:
        """At least one name, each with options below it, or nothing."""
        found = self.mapping(key, self.data[key])
        if not found:
            raise self.error(key, "is empty; a study has at least one.")
        return {name: self.mapping(f"{key}: {name}", {} if own is None else own) for name, own in found.items()}

    def options(self, key: str, value: Any, but: str = "") -> dict[str, Any]:
        """Options of a run, path → value, as in a config file."""
        given = self.mapping(key, {} if value is None else value)
        flat = flatten({name: own for name, own in given.items() if name != but}, f"{self.path}: {key}")
        if "seed" in flat:
            raise self.error(key, "a study has seeds, a list beside base or in a column, and no seed.")
        return flat

    def seeds(self, key: str, value: Any) -> tuple[int, ...]:
        whole = isinstance(value, list) and all(type(seed) is int and seed >= 0 for seed in value)
        if not whole or not value or len(set(value)) != len(value):
            raise self.error(
                key, f"{value!r} is not allowed. Allowed: a list of different whole numbers ≥ 0, [0, 1, 2]."
            )
        return tuple(value)

    def distinct(self, key: str, names: Sequence[str]) -> None:
        """Two names must not share the files of their cells."""
        files: dict[str, str] = {}
        for name in names:
            made = file_name(name)
            if not made or made in files:
                other = f"gives the same file name as {files[made]!r}" if made else "has neither letter nor digit in it"
                raise self.error(key, f"the name {name!r} {other} (a to z, 0 to 9 and dots count); choose another.")
            files[made] = name

    def measures(self, key: str, value: Any) -> tuple[dict[Measure, str], dict[str, Column]]:
        """Measure → heading, and the columns that the file declares itself, as methods report them."""
        found: dict[Measure, str] = {}
        own: dict[str, Column] = {}
        for name, given in self.mapping(key, value).items():
            place = f"{key}: {name}"
            if isinstance(given, Mapping):
                self.known(given, ("title", "unit", "best"), "a measure of a method's own", place)
                unit, best = (
                    given.get("unit", ""),
                    given.get("best", "largest" if given.get("unit") == "percent" else "smallest"),
                )
                if unit not in UNITS:
                    raise self.error(place, f"unit: {unit!r} is not allowed. Allowed: {', '.join(UNITS)}.")
                if best not in get_args(Best):
                    raise self.error(place, f"best: {best!r} is not allowed. Allowed: largest, smallest.")
                own[name.removeprefix("best_").removeprefix("validated_")] = Column(unit, best)
                given = given.get("title", name)
            if not isinstance(given, str):
                raise self.error(place, f"{given!r} is not allowed. Allowed: the heading, as text.")
            try:
                found[find(name, own)] = given
            except ConfigError as error:
                raise self.error(key, str(error)) from error
        if not found:
            raise self.error(key, "is empty; a study has at least one.")
        return found, own
