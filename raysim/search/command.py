"""The command line of ``python -m raysim.search``, and the folder that keeps a search."""

from __future__ import annotations

import argparse
import itertools
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from raysim.config.answering import refusing
from raysim.config.command_line import given_options
from raysim.config.run_config import RunConfig, build, choose_classes, options_of
from raysim.config.typed_options import check_typed
from raysim.errors import ConfigError
from raysim.remote.address import local_path
from raysim.results.measures import find
from raysim.search.halving import FIXED, Bracket, bracket_of
from raysim.search.space import Axis, read_axes
from raysim.search.trials import Search, cells_of
from raysim.studies.checks import check_data
from raysim.studies.choosing import check_measure, check_run
from raysim.studies.command import count_of, keep_request, sampler_seed_of, seeds_of

USAGE = "python -m raysim.search --space NAME=LOW:HIGH[:log] … --output FOLDER [--trials 20] [options of all runs]"
FILE = "search.yaml"
"""The request, in the search's folder."""
JUDGED = ("evaluation.", "workload.validation_share")
"""Beginnings of the options that decide on which data, and until when, a run is judged."""


@dataclass(frozen=True)
class Command:
    """A command line, read and checked."""

    search: Search
    config: RunConfig
    """The settings of all runs, without those that are searched."""
    folder: Path
    workers: int | None
    words: str
    """The command line that makes the same search again."""


def read(argv: Sequence[str] | None, description: str) -> Command:
    """The command line; its folder gets the request, or has the same one.

    Raises:
        ConfigError: something in it is missing, unknown or not allowed, or the folder has another search.
    """
    parser = _parser(description)
    refusing(parser, argv)
    known, rest = parser.parse_known_args(argv)
    if not known.space or known.output is None:
        raise ConfigError(f"--{'space' if not known.space else 'output'} is missing.\nusage: {USAGE}")
    if find_spec("optuna") is None:
        raise ConfigError("the package optuna is not installed. Install it with pip install optuna.")
    base = given_options(rest, [{}])
    if "seed" in base:
        raise ConfigError("--seed: a search has seeds, --seeds 0-2.")
    measure = find(known.measure)
    axes = read_axes(known.space, options_of(choose_classes([base])[0]))
    searched = {axis.path for axis in axes}
    if both := next((path for path in base if path in searched), None):
        raise ConfigError(f"--{both}: it is searched (--space); leave one of the two out.")
    check_measure("--measure", measure)
    first = {axis.path: axis.ends[0] for axis in axes}
    config = build([base, first])
    for values in _ends(axes, *JUDGED):
        check_run(build([base, first, values]))
    bracket = _bracket(known, config, searched)
    seeds = tuple(seeds_of(known.seeds))
    if len({*seeds}) < len(seeds):
        raise ConfigError(f"--seeds {known.seeds}: a seed is there twice. Give each once.")
    results = known.output / "results"
    search = Search(base, tuple(axes), known.trials, known.batch, seeds, measure, known.sampler_seed, results, bracket)
    if not (known.output / FILE).exists():  # else it is a kept search, which may need no data any more
        _check_data(search, first)
        check_typed(base, [config, *_one_by_one(search, first)])
    _keep(known.output / FILE, search)
    return Command(search, config, known.output, known.workers, _words(search, known.seeds, rest))


def _ends(axes: Sequence[Axis], *beginnings: str) -> Iterator[dict[str, Any]]:
    """All combinations of those options that begin so; of a range both ends."""
    found = [axis for axis in axes if axis.path.startswith(beginnings)]
    for values in itertools.product(*(axis.ends for axis in found)):
        yield dict(zip([axis.path for axis in found], values, strict=True))


def _one_by_one(search: Search, first: Mapping[str, Any]) -> Iterator[RunConfig]:
    """The settings of runs in which one option that is searched has another value than its first."""
    for axis in search.axes:
        for value in axis.ends[1:]:
            with suppress(ConfigError):  # values that no run can have together
                yield build([search.base, first, {axis.path: value}])


def _check_data(search: Search, first: Mapping[str, Any]) -> None:
    """Look at the data before the first trial; where options of the workload are searched, one of their ends is enough.

    Args:
        first: a value of each option that is searched.

    Raises:
        ConfigError: data is missing, cannot be split over the clients as asked, or gives no value by which to choose.
    """
    refused = list[ConfigError]()
    for values in _ends(search.axes, "workload."):
        try:
            return check_data(cells_of(search, 1, {**first, **values})[:1], search.measure, "--measure")
        except ConfigError as error:  # a trial that fails, if others do not
            refused.append(error)
    raise refused[0]


def _bracket(known: argparse.Namespace, config: RunConfig, searched: Collection[str]) -> Bracket | None:
    """The bracket that the command line asks for."""
    if known.halving is None:
        if known.first_rung is not None:
            raise ConfigError("--first-rung: there are no rungs without --halving 2.")
        return None
    if fixed := next((path for path in FIXED if path in searched), None):
        raise ConfigError(
            f"--space {fixed}: cannot be searched with --halving, whose rungs are rounds of one schedule."
        )
    if known.trials % known.batch:
        raise ConfigError(
            f"--trials {known.trials}: not allowed. Allowed with --halving: a multiple of --batch {known.batch}, as "
            "each batch is a bracket."
        )
    return bracket_of(config, known.halving, known.batch, known.first_rung)


def _parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysim.search", usage=USAGE, description=description, allow_abbrev=False
    )
    add = parser.add_argument
    add(
        "--space",
        action="append",
        default=[],
        metavar="NAME=RANGE",
        help="an option that is searched: mu=0.001:1:log, momentum=0:0.9, optimizer=sgd,adam; a name alone: the "
        "option's own range or values",
    )
    add("--trials", type=partial(count_of, "trials"), default=20, metavar="N", help="trials in all, 20 by default")
    add(
        "--batch",
        type=partial(count_of, "batch"),
        default=4,
        metavar="N",
        help="trials that are asked at once, 4 by default",
    )
    add(
        "--halving",
        type=partial(count_of, "halving", least=2),
        metavar="N",
        help="successive halving: a batch is a bracket, and the best 1/N of its trials go on at each rung",
    )
    add(
        "--first-rung",
        type=partial(count_of, "first-rung"),
        metavar="ROUNDS",
        help="rounds of the first rung, each later one has N times as many; by default such that one trial of a "
        "batch trains all rounds",
    )
    add("--seeds", default="0", metavar="0-4", help="seeds of every trial, whose mean counts; 0 by default")
    add("--measure", default="validation_accuracy", metavar="NAME", help="a column of validation data that counts")
    add("--sampler-seed", type=sampler_seed_of, default=0, metavar="N", help="seed of Optuna's sampler, 0 by default")
    add("--workers", type=partial(count_of, "workers"), metavar="N", help="runs side by side; by default one a core")
    add("--output", type=local_path, default=None, metavar="FOLDER", help="the folder of the search")
    add("--json", action="store_true", help="print one JSON object: trials, the best, files")
    return parser


def _keep(path: Path, search: Search) -> None:
    """Write the request; one that is there already may differ in the number of trials alone."""
    request: dict[str, Any] = {
        "space": [axis.words() for axis in search.axes],
        "batch": search.batch,
        "seeds": [*search.seeds],
        "measure": search.measure.name,
        "sampler_seed": search.sampler_seed,
        "base": dict(search.base),
    }
    if search.bracket is not None:
        request |= {"halving": search.bracket.factor, "rungs": [*search.bracket.rungs]}
    keep_request(path, request, f"{path} is another search. Give its command line again, or another --output.")


def _words(search: Search, seeds: str, rest: Sequence[str]) -> str:
    """The command line without workers and folder, which change nothing in the table."""
    words = ["python", "-m", "raysim.search"]
    for axis in search.axes:
        words += ["--space", axis.words()]
    words += ["--trials", str(search.trials), "--batch", str(search.batch), "--seeds", seeds]
    if search.bracket is not None:
        words += ["--halving", str(search.bracket.factor), "--first-rung", str(search.bracket.rungs[0])]
    words += ["--measure", search.measure.name, "--sampler-seed", str(search.sampler_seed), *rest]
    return shlex.join(words)
