"""The values of a study file, each checked: every mistake is one sentence that names the file and the key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from raysim.columns import Best, Column
from raysim.config.config_file import read_plain
from raysim.config.nearest import did_you_mean
from raysim.config.run_config import flatten
from raysim.errors import ConfigError
from raysim.report.measures import Measure, find
from raysim.studies.places import place
from raysim.units import UNITS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Entry = TypeVar("Entry", bound="DataclassInstance")
KEYS = ("title", "results", "table", "base", "columns", "rows", "seeds", "measures")
"""What every study has."""


def file_name(text: str) -> str:
    """A row's or column's name as part of a file's name."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


class Reader:
    """Takes values out of a study file, each checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        data = read_plain(path, f"{path}: there is no such file (looked in {Path.cwd()}).")
        if not isinstance(data, dict):
            raise ConfigError(f"{path} is no study: it must hold {', '.join(KEYS)}.")
        self.data: dict[Any, Any] = data
        self.own: dict[str, Column] = {}
        """Columns of the rounds table that the file declares itself, as methods report them; once measures are read."""

    def error(self, key: str, text: str) -> ConfigError:
        """What is wrong with a key, or with the whole file."""
        return ConfigError(f"{self.path}: {key}: {text}" if key else f"{self.path}: {text}")

    def known(self, data: Mapping[Any, Any], keys: Sequence[str], what: str, place: str = "") -> None:
        """ConfigError for the first key that is none of these."""
        for key in data:
            if key not in keys:
                hint = did_you_mean(str(key), keys)
                raise self.error(place, f"unknown key {key}.{hint} Keys of {what}: {', '.join(keys)}.")

    def text(self, key: str) -> str:
        """What the file has there, if it is text."""
        value = self.data[key]
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"{value!r} is not allowed. Allowed: text.")
        return value

    def beside(self, path: str, suffix: str = "") -> Path:
        """A path of the file, which counts from its folder."""
        return place(self.path, path, suffix)

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

    def options(self, key: str, value: Any, but: Sequence[str] = ()) -> dict[str, Any]:
        """Options of a run, path → value, as in a config file."""
        given = self.mapping(key, {} if value is None else value)
        flat = flatten({name: own for name, own in given.items() if name not in but}, f"{self.path}: {key}")
        if "seed" in flat:
            raise self.error(key, "a study has seeds, a list beside base or in a column, and no seed.")
        return flat

    def seeds(self, key: str, value: Any) -> tuple[int, ...]:
        """At least one seed, and none twice."""
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

    def measure(self, key: str, name: object) -> Measure:
        """The measure of this name."""
        try:
            return find(str(name), self.own)
        except ConfigError as error:
            raise self.error(key, str(error)) from error

    def shown(self, key: str, value: Any, measures: Mapping[Measure, str]) -> dict[str, Measure]:
        """Name of a measure of the study → what a row shows in its place, in the same unit."""
        found: dict[str, Measure] = {}
        for name, other in self.mapping(key, value).items():
            self.known({name: other}, [measure.name for measure in measures], "it, the measures", key)
            found[name] = self.measure(f"{key}: {name}", other)
            unit = next(measure.unit for measure in measures if measure.name == name)
            if found[name].unit != unit:
                raise self.error(f"{key}: {name}", f"{other} is in {found[name].unit}, and the column in {unit}.")
        return found

    def measures(self, key: str, value: Any) -> dict[Measure, str]:
        """Measure → heading."""
        found: dict[Measure, str] = {}
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
                self.own[name.removeprefix("best_").removeprefix("validated_")] = Column(unit, best)
                given = given.get("title", name)
            if not isinstance(given, str):
                raise self.error(place, f"{given!r} is not allowed. Allowed: the heading, as text.")
            found[self.measure(key, name)] = given
        if not found:
            raise self.error(key, "is empty; a study has at least one.")
        return found

    def picture(self, key: str, kind: type[Entry]) -> Entry | None:
        """A picture that the file asks for, if it does: the fields of its class are the keys, no more and no less."""
        if key not in self.data:
            return None
        data, keys = self.data[key], [field.name for field in fields(kind)]
        if not isinstance(data, Mapping) or set(data) != set(keys):
            there = ", ".join(map(str, data)) if isinstance(data, Mapping) else repr(data)
            raise self.error(key, f"it has exactly {', '.join(keys)}, and this one {there}.")
        values = {**data, "path": self.beside(str(data["path"]), ".png")}
        if "measure" in data:
            values["measure"] = self.measure(key, data["measure"])
        return kind(**values)
