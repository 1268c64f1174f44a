"""The command line of ``python -m raysim.study``: a study file, or a grid from which one is made."""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from raysim.config.answering import refusing
from raysim.config.command_line import given_options
from raysim.config.config_file import read_plain
from raysim.errors import ConfigError, RaysimError
from raysim.remote.address import local_path, typed_path
from raysim.results.measures import WHOLE_RUNS, find
from raysim.storage.atomic_files import check_folder, write_atomically
from raysim.storage.claims import alone
from raysim.studies.computing import Where
from raysim.studies.grid import axis_of, check_blanks, rows_of
from raysim.studies.placement import placement

USAGE = """python -m raysim.study FILE [--workers N] [--cells-on ray] [--table-only] [--trust FOLDER]
           [--row NAME]… [--column NAME]… [--seeds 0-4] [--gpus-per-client 1/k]
       python -m raysim.study --grid OPTION=A,B … [--seeds 0-4] --output FOLDER [options of all runs]"""
OF_GRIDS = ("grid", "measure", "choose", "by", "title", "output")
"""Options of a grid, which a study file has as keys."""
CHOOSES = "validation_accuracy"
"""The measure that chooses unless the user names one."""
FILE = "study.yaml"
"""The study file that a grid's folder gets."""


@dataclass(frozen=True)
class Part:
    """The rows, columns and seeds whose cells are computed; none of a kind: all."""

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Command:
    """A command line, read."""

    study: Path
    trusted: tuple[Path, ...]
    table_only: bool
    workers: int | None
    """How many cells run side by side; None: not said."""
    cells_on: Where = "processes"
    written: tuple[Path, ...] = ()
    """A study file that this command writes, and the folders before it, as far as they were not there."""
    placed: Mapping[str, object] = field(default_factory=dict)
    """Options of all cells that say where they are computed (:mod:`raysim.studies.placement`)."""
    part: Part = Part()
    """The cells that are computed."""
    typed: tuple[str, ...] = ()
    """Options of all cells that stand on this command line, of which each is read by a cell."""

    @contextmanager
    def refused(self) -> Iterator[None]:
        """Where the block refuses the request, what was written is taken back: the command can be given again."""
        try:
            yield
        except RaysimError:
            for path in reversed(self.written):
                with suppress(OSError):  # other files are in the folder
                    path.rmdir() if path.is_dir() else path.unlink()
            raise


def read(argv: Sequence[str] | None, description: str) -> Command:
    """The command line; a grid's study file is written into its folder first.

    Raises:
        ConfigError: there is neither a file nor a grid, or both; or the folder has another study.
    """
    parser = argparse.ArgumentParser(
        prog="python -m raysim.study", usage=USAGE, description=description, allow_abbrev=False
    )
    parser.add_argument("--table-only", action="store_true", help="run nothing, write the table of what is there")
    add_parts(parser, "seeds whose missing cells are run alone, 0-4 or 0,2,5; of a grid all that it has, 0 by default")
    parser.add_argument(
        "--workers",
        type=partial(count_of, "workers"),
        metavar="N",
        help="cells that run side by side, each in a process of its own; 1: all in this one; by default one a core",
    )
    parser.add_argument(
        "--cells-on",
        choices=("processes", "ray"),
        default="processes",
        help="where cells run: in processes of this machine, or each as a Ray task of the cluster at engine.address",
    )
    parser.add_argument(
        "--trust",
        type=typed_path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="import code (package.module:Class), join the Ray cluster, download data and write where a study file in "
        "FOLDER names",
    )
    parser.add_argument("--grid", action="append", default=[], metavar="OPTION=A,B", help="an option and its values")
    parser.add_argument(
        "--measure",
        action="append",
        default=[],
        metavar="NAME",
        help="a measure of a grid's table, accuracy if none",
    )
    parser.add_argument(
        "--choose",
        action="append",
        default=[],
        metavar="OPTION",
        help="an option of the grid whose best value on validation data is chosen for each row of the table",
    )
    parser.add_argument(
        "--by",
        default=None,
        metavar="NAME",
        help="the measure of validation data that chooses, validation_accuracy by default",
    )
    parser.add_argument("--title", default=None, metavar="TEXT", help="the title of a grid's tables")
    parser.add_argument(
        "--output", type=local_path, default=None, metavar="FOLDER", help="the folder of a grid's study"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object: progress, values, failed cells")
    refusing(parser, argv)
    check_blanks(sys.argv[1:] if argv is None else argv)
    known, rest = parser.parse_known_args(argv)
    path = Path(rest.pop(0)) if rest and not rest[0].startswith("-") else None
    written: tuple[Path, ...] = ()
    placed: Mapping[str, object] = {}
    trusted: tuple[Path, ...] = tuple(known.trust)
    typed: tuple[str, ...] = ()
    if path is not None:
        given = [f"--{name}" for name in OF_GRIDS if getattr(known, name)]
        placed = placement([*given, *rest], str(path))
    elif not known.grid:
        file = next((one for one in rest if one.endswith((".yaml", ".yml"))), None)
        raise ConfigError(
            f"{file}: a study file comes first, its options after it."
            if file
            else f"give a study file, or a grid:\nusage: {USAGE}"
        )
    elif known.output is None:
        raise ConfigError("--output FOLDER is missing: the folder that keeps the grid's study file, cells and table.")
    else:
        written, study = not_there(known.output / FILE), _study(known, rest)
        path = _made(known.output, study)
        typed = tuple(study["base"]) if written else ()  # else it is a kept study's
        trusted += (known.output,)  # what the file names stands on the command line
    part = part_of(known)
    return Command(path, trusted, known.table_only, known.workers, known.cells_on, written, placed, part, typed)


def add_parts(parser: argparse.ArgumentParser, seeds: str) -> None:
    """The options that name a part of a study's cells.

    Args:
        parser: to which they are added.
        seeds: the help of ``--seeds``.
    """
    for name in ("row", "column"):
        parser.add_argument(
            f"--{name}",
            action="append",
            default=[],
            metavar="NAME",
            help=f"run the missing cells of this {name} alone, or of several, each named so; the table has all",
        )
    parser.add_argument("--seeds", default=None, metavar="0-4", help=seeds)


def part_of(known: argparse.Namespace) -> Part:
    """The part that these options name."""
    return Part(tuple(known.row), tuple(known.column), tuple(seeds_of(known.seeds)) if known.seeds is not None else ())


def not_there(path: Path) -> tuple[Path, ...]:
    """The folders on the way to a file, and the file, as far as they are not there."""
    return tuple(one for one in (*reversed(path.parents), path) if not one.exists())


def count_of(option: str, text: str, least: int = 1) -> int:
    """A number of workers, or of whatever else the option counts."""
    if not text.isdecimal() or int(text) < least:
        raise ConfigError(f"--{option} {text}: not allowed. Allowed: a whole number ≥ {least}.")
    return int(text)


def sampler_seed_of(text: str) -> int:
    """The seed of random numbers that belong to no run."""
    if not text.isdecimal() or int(text) >= 2**32:
        raise ConfigError(f"--sampler-seed {text}: not allowed. Allowed: a whole number from 0 to {2**32 - 1}.")
    return int(text)


def _study(known: argparse.Namespace, rest: Sequence[str]) -> dict[str, Any]:
    """The content of the study file that a command line stands for."""
    axes = dict(map(axis_of, known.grid))
    if len(axes) < len(known.grid):
        raise ConfigError("--grid: an option is there twice; give all its values at once, --grid mu=0.01,0.1.")
    if known.by and not known.choose:
        raise ConfigError("--by: nothing is chosen; name the options whose best value is, --choose learning_rate.")
    combinations = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    base = given_options(rest, combinations)
    if both := next((path for path in base for name in axes if _names(name, path)), None):
        raise ConfigError(f"--{both}: the grid has its values (--grid); leave one of the two out.")
    try:
        rows_of(axes, base, [{}], known.choose)
    except ConfigError as error:  # of the study file, which goes where it is refused
        raise ConfigError(f"--grid: {error}") from error
    measures = known.measure or ["accuracy"]
    choose = {"choose": {"options": known.choose, "measure": known.by or CHOOSES}} if known.choose else {}
    return {
        "title": known.title or f"Grid of {', '.join(axes)}",
        "results": "results",
        "table": "table.md",
        "latex": "table.tex",
        "csv": "table.csv",
        "curves": {"path": ["curves.svg", "curves.pdf"], "measure": _drawn(measures), "against": "round"},
        "base": base,
        "grid": axes,
        **choose,
        "seeds": seeds_of(known.seeds or "0"),
        "measures": {name: name.replace("_", " ") for name in measures},
        "statistics": True,
    }


def _names(name: str, path: str) -> bool:
    """Whether this name, as it was typed, is that of the option: its path, or the last part of it."""
    return name.replace("-", "_") in (path, path.rpartition(".")[2], path.removesuffix(".name"))


def _drawn(measures: Sequence[str]) -> str:
    """The measure of the curves: the first that rounds have; where none is such a one, the column of the first."""
    for name in measures:
        with suppress(ConfigError):  # it is refused as a measure of the table
            if find(name).how not in WHOLE_RUNS:
                return name
    with suppress(ConfigError):
        first = find(measures[0])
        return "accuracy" if first.how == "gain" else first.column
    return "accuracy"


def seeds_of(text: str) -> list[int]:
    """Seeds from ``0-4``, ``0,2,5`` or both mixed."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match is None or (last := int(match[2] or match[1])) < int(match[1]):
            raise ConfigError(f"--seeds {text}: not allowed. Allowed: whole numbers ≥ 0, 0-4 or 0,2,5.")
        found += range(int(match[1]), last + 1)
    return found


def _made(folder: Path, study: Mapping[str, Any]) -> Path:
    """The study file in a grid's folder, which is made; one that is there already must be the same."""
    path = folder / FILE
    other = f"{path} is another study. Go on with it: python -m raysim.study {path}; or give another --output."
    keep_request(path, study, other)
    return path


def keep_request(path: Path, request: Mapping[str, Any], other: str) -> None:
    """Write a request as YAML; ConfigError that says ``other`` if another one is there already."""
    import yaml

    check_folder(path.parent)
    if not path.exists():
        with alone(path):  # two processes may begin at once
            if not path.exists():
                text = yaml.safe_dump(request, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
                write_atomically(path, text.encode())
                return
    if read_plain(path, "") != request:
        raise ConfigError(other)
