"""The types that keys of a study file have, for pydantic, and its errors as one sentence each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    NonNegativeInt,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from raysim.columns import Column
from raysim.config.nearest import did_you_mean
from raysim.config.run_config import flatten
from raysim.errors import ConfigError
from raysim.results.measures import Measure, find
from raysim.studies.places import place

KINDS = (".png", ".svg", ".pdf")
"""Kinds of pictures."""
NAMES = "names with values below, NAME: VALUE"
ALLOWED = {
    "string_type": "text",
    "string_pattern_mismatch": "text",
    "dict_type": NAMES,
    "list_type": "a list, [A, B]",
    "int_type": "a whole number",
    "greater_than_equal": "a whole number ≥ 0",
    "too_short": "at least one entry",
}
"""Kind of pydantic's error → the values that are allowed there."""


@dataclass
class Context:
    """Facts that the values of a study file are checked against."""

    file: Path
    trusted: bool = False
    """Whether it may name places anywhere."""
    own: dict[str, Column] = field(default_factory=dict)
    """Columns of the rounds table that the file declares itself, as methods report them; once measures are read."""


def context_of(info: ValidationInfo) -> Context:
    """The facts that are given with the file."""
    found = info.context
    if not isinstance(found, Context):
        raise TypeError("a study file is validated with context=Context(path)")
    return found


class Entry(BaseModel):
    """Keys with values of fixed types; other keys are refused, with the nearest that there is."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _has_its_keys(cls, data: object) -> object:
        keys = {entry.alias or name: entry.is_required() for name, entry in cls.model_fields.items()}
        there = ", ".join(keys)
        if not isinstance(data, Mapping):
            raise ValueError(f"{data!r} is not allowed. Allowed: {there}, each with its value.")
        free = cls.model_config.get("extra") == "allow"
        for name in data:
            if not isinstance(name, str):
                raise ValueError(f"the name {name!r} is no text; put it into quotes.")
            if name not in keys and not free:
                raise ValueError(f"unknown key {name}.{did_you_mean(name, keys)} Keys: {there}.")
        if missing := [name for name, required in keys.items() if required and name not in data]:
            raise ValueError(f"{', '.join(missing)} is missing. Keys: {there}.")
        return data


def or_empty(value: object) -> object:
    """A key with nothing behind it holds no entries."""
    return {} if value is None else value


def flat_options(given: Mapping[str, object]) -> dict[str, object]:
    """Options of a run, path → value, as in a config file."""
    try:
        flat = flatten(given, "")
    except ConfigError as error:
        raise ValueError(str(error).removeprefix(": ")) from error
    if "seed" in flat:
        raise ValueError("a study has seeds, a list beside base or in a column, and no seed.")
    return flat


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) != len(seeds):
        raise ValueError(f"{seeds!r} is not allowed. Allowed: a list of different whole numbers ≥ 0, [0, 1, 2].")
    return seeds


def read_measure(name: object, info: ValidationInfo) -> Measure:
    """The measure of this name, by the columns that the file declares so far."""
    try:
        return find(str(name), context_of(info).own)
    except ConfigError as error:
        raise ValueError(str(error)) from error


def place_in(info: ValidationInfo, path: str, suffix: str = "") -> Path:
    """The place that a value names, as of :func:`raysim.studies.places.place`."""
    context = context_of(info)
    return place(context.file, path, suffix, trusted=context.trusted)


def file_place(suffix: str, path: object, info: ValidationInfo) -> Path:
    """The place of a file with this ending, ``.png`` say."""
    if not isinstance(path, str):
        raise ValueError(f"{path!r} is not allowed. Allowed: text.")
    return place_in(info, path, suffix)


def _picture_file(path: object, info: ValidationInfo) -> Path:
    if not isinstance(path, str) or not path.endswith(KINDS):
        raise ValueError(f"{path!r} is not allowed. Allowed: a path that ends in {', '.join(KINDS)}.")
    return place_in(info, path)


Text = Annotated[str, StringConstraints(pattern=r"\S")]
Options = Annotated[dict[str, Any], BeforeValidator(or_empty), AfterValidator(flat_options)]
Seeds = Annotated[list[NonNegativeInt], Field(min_length=1), AfterValidator(_distinct)]
Measured = Annotated[InstanceOf[Measure], BeforeValidator(read_measure)]
"""The name of a measure, read as what it names."""
Png = Annotated[Path, BeforeValidator(partial(file_place, ".png"))]
"""The path of a picture, counted from the study file's folder."""
PictureFile = Annotated[Path, BeforeValidator(_picture_file)]
"""The same of one that may be a drawing too."""


def file_name(text: str) -> str:
    """A row's or column's name as part of a file's name."""
    name = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")
    return name if name.strip(".") else ""  # ".." is another folder


def mistake(file: Path, key: str, text: str) -> ConfigError:
    """A sentence on a mistake in a key, or in the whole file."""
    return ConfigError(f"{file}: {key}: {text}" if key else f"{file}: {text}")


def explained(file: Path, error: ValidationError) -> ConfigError:
    """The first of pydantic's errors as a sentence with file, key, and what is allowed."""
    first = error.errors(include_url=False)[0]
    *keys, last = first["loc"] or ("",)
    if last == "[key]":
        keys, text = keys[:-1], f"the name {first['input']!r} is no text; put it into quotes."
        if first["type"] == "value_error":
            text = first["msg"].removeprefix("Value error, ")
    else:
        keys = [*keys, last]
        text = first["msg"].removeprefix("Value error, ")
        if first["type"] == "literal_error":
            text = f"{first['input']!r} is not allowed. Allowed: {first['ctx']['expected']}."
        elif first["type"] in ALLOWED:
            text = f"{first['input']!r} is not allowed. Allowed: {ALLOWED[first['type']]}."
    place = ": ".join(f"entry {key + 1}" if isinstance(key, int) else key for key in keys)
    return mistake(file, place, text)
