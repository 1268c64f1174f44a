"""A grid: every combination of some options' values, as the rows of a study.

An option that a combination's method, workload or model does not have (``mu`` with fedavg) is left out of it, and
combinations that are equal then are one row; an option that no combination has is a mistake.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raysim.config import registry
from raysim.config.command_line import full_name
from raysim.config.options import Option, plain, show
from raysim.config.run_config import choose_classes, options_of
from raysim.errors import ConfigError
from raysim.storage.untrusted_files import UnreadableFileError, yaml_of
from raysim.units import counted

Options = Mapping[str, Any]


def axis_of(text: str) -> tuple[str, list[Any]]:
    """An option and its values, ``mu=0.01,0.1``."""
    name, equals, values = text.partition("=")
    try:
        found = yaml_of(f"[{values}]") if equals and values.strip() else None
    except UnreadableFileError:
        found = None
    if not name or not found:
        raise ConfigError(f"--grid {text}: not allowed. Allowed: an option and its values, --grid mu=0.01,0.1.")
    return name.lstrip("-"), found


def check_blanks(words: Sequence[str]) -> None:
    """ConfigError for a word of a command line that comes right after ``--grid OPTION=A,B`` and is no option."""
    for before, last, word in zip(["", *words], words, words[1:], strict=False):
        after = (before == "--grid" and not last.startswith("-")) or last.startswith("--grid=")
        if after and not word.startswith("-") and not word.endswith((".yaml", ".yml")):
            raise ConfigError(
                f"Unexpected argument {word!r}. Values of --grid have commas and no blanks between them, --grid "
                "mu=0.01,0.1."
            )


def names_in(grid: Mapping[str, Sequence[Any]]) -> list[Options]:
    """The methods, workloads and models that a grid names, each as an option ``method.name``."""
    return [{f"{kind}.name": value} for name in grid if (kind := _kind(name)) for value in grid[name]]


@dataclass(frozen=True)
class GridRows:
    """The rows that a grid stands for."""

    options: Mapping[str, Options]
    """Name of the row → its options."""
    groups: Mapping[str, tuple[str, str]]
    """Name of the row → that of the row without the options that are chosen, and these options with their values."""
    notes: tuple[str, ...]
    """A sentence for each method, workload or model that lacks an option."""


def rows_of(
    grid: Mapping[str, Sequence[Any]], base: Options, columns: Sequence[Options], chosen: Collection[str] = ()
) -> GridRows:
    """The rows that a grid stands for, in the order of its options and values.

    Args:
        grid: name of an option, in full or its last part, → its values.
        base: options of all cells.
        columns: options of each column.
        chosen: the names of those options whose best value is chosen.

    Raises:
        ConfigError: an option is known to no combination or there in two spellings, or a value is not allowed or there
            twice.
    """
    _check(grid, chosen)
    found, groups = dict[str, dict[str, Any]](), dict[str, tuple[str, str]]()
    lacking: dict[str, set[str]] = {name: set() for name in grid}
    known = set[str]()
    for values in itertools.product(*grid.values()):
        own, words = _row(dict(zip(grid, values, strict=True)), base, columns, lacking, known)
        name = ", ".join(words.values())
        found[name] = own
        kept, picked = (
            ", ".join(text for option, text in words.items() if (option in chosen) == inside)
            for inside in (False, True)
        )
        groups[name] = (kept or "chosen", picked)
    for option in grid:
        if option not in known:
            first = {f"{kind}.name": grid[name][0] for name in grid if (kind := _kind(name))}
            full_name(option, next(_options(first, base, columns)), prefix="")  # says that there is none
    notes = [
        f"{', '.join(sorted(without))} has no {option}, which is left out there"
        for option, without in lacking.items()
        if without
    ]
    if notes and len(found) < (combinations := math.prod(map(len, grid.values()))):
        notes[-1] += f": {counted(len(found), 'row')} in the place of {combinations}"
    return GridRows(found, groups, tuple(notes))


def _row(
    values: Mapping[str, Any],
    base: Options,
    columns: Sequence[Options],
    lacking: dict[str, set[str]],
    known: set[str],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Options of one combination, and their words in its name; notes which options it lacks and has."""
    named = {f"{kind}.name": value for name, value in values.items() if (kind := _kind(name))}
    tables = [*_options(named, base, columns)]
    own, words = dict[str, Any](named), dict[str, str]()
    for name, value in values.items():
        if _kind(name):
            words[name] = str(value)
            known.add(name)
        elif (option := _find(name, tables)) is None:
            lacking[name].add(", ".join(map(str, named.values())) or "this run")
        else:
            if option.path in own:
                raise _twice(option.path)
            own[option.path] = plain(option.convert(value))
            words[name] = f"{name.rpartition('.')[2]} {show(own[option.path])}"
            known.add(name)
    return own, words


def _options(named: Options, base: Options, columns: Sequence[Options]) -> Iterator[Mapping[str, Option]]:
    """The options of a combination's runs, in each column."""
    for column in columns:
        yield options_of(choose_classes([base, column, named])[0])


def _find(name: str, tables: Sequence[Mapping[str, Option]]) -> Option | None:
    """The option of that name, in the first column that has it."""
    plainly = name.replace("-", "_")
    for options in tables:
        if plainly in options or any(path.rpartition(".")[2] == plainly for path in options):
            return options[full_name(name, options, prefix="")]
    return None


def _twice(path: str) -> ConfigError:
    return ConfigError(f"{path} is there twice, in two spellings. Give all its values in one list.")


def _kind(name: str) -> str | None:
    kind = name.removesuffix(".name")
    return kind if kind in registry.KINDS else None


def _check(grid: Mapping[str, Sequence[Any]], chosen: Collection[str]) -> None:
    if stranger := next((name for name in chosen if name not in grid or _kind(name)), None):
        raise ConfigError(
            f"choose: {stranger} is no option of the grid whose best value can be chosen. Allowed: "
            f"{', '.join(name for name in grid if not _kind(name)) or 'none'}."
        )
    if "seed" in grid:
        raise ConfigError("seed: a study has seeds, a list beside the grid.")
    for name, values in grid.items():
        if name.endswith(".name") and _kind(name) in grid:
            raise _twice(name)
        for place, value in enumerate(values):
            if value in values[:place]:
                raise ConfigError(f"{name}: {show(value)} is there twice.")
