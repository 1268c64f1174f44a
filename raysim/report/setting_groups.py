"""Runs grouped by their settings: runs of one group differ in their seed alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raysim.config.options import show
from raysim.config.run_config import flatten, options_of
from raysim.run_result import RunResult

SEED = "seed"


@dataclass(frozen=True)
class Setting:
    """What a few runs have in common, and the runs, one for each seed."""

    label: str
    """The options in which it differs from the other settings, in a few words."""
    differing: Mapping[str, str]
    """Option → its value as text, empty where the setting has no such option; the same options for each setting."""
    runs: tuple[RunResult, ...]
    repeated: tuple[RunResult, ...]
    """Runs with a seed that another of its runs has: they say nothing new."""

    @property
    def seeds(self) -> list[str]:
        """The seeds of its runs."""
        return [str(run.config.get(SEED, "?")) for run in self.runs]


def group(results: Sequence[RunResult]) -> list[Setting]:
    """The settings of several runs, in the order of their first runs.

    Placement (actors, output, pictures …) cannot change a result, so it separates nothing. Only the folders' own text
    is read: none of the classes that a config names is imported.
    """
    ignored = {SEED, *(path for path, option in options_of({}).items() if option.help.placement)}
    groups: dict[str, tuple[dict[str, Any], list[RunResult]]] = {}
    for result in results:
        own = {path: value for path, value in flatten(result.config).items() if path not in ignored}
        groups.setdefault(json.dumps(own, sort_keys=True, default=str), (own, []))[1].append(result)
    paths = _differing([own for own, _ in groups.values()])
    labels = [_label(own, paths) for own, _ in groups.values()]
    settings = []
    for label, (own, runs) in zip(labels, groups.values(), strict=True):
        if not label or labels.count(label) > 1:
            label = ", ".join(filter(None, (label, runs[0].folder.resolve().name)))
        differing = {path: show(own[path]) if path in own else "" for path in paths}
        settings.append(Setting(label, differing, *_one_a_seed(runs)))
    return settings


def _one_a_seed(runs: Sequence[RunResult]) -> tuple[tuple[RunResult, ...], tuple[RunResult, ...]]:
    """The longest run of each seed, in the order of seeds, and those that are left."""
    longest: dict[str, RunResult] = {}
    for run in runs:
        seed = str(run.config.get(SEED))
        if seed not in longest or len(run.rounds) > len(longest[seed].rounds):
            longest[seed] = run
    kept = sorted(longest.values(), key=_seed)
    return tuple(kept), tuple(run for run in runs if not any(run is other for other in kept))


def _differing(options: Sequence[Mapping[str, Any]]) -> list[str]:
    """The options that differ between two settings which both have them.

    Another method brings other options, and its name says enough.
    """
    found = []
    for path in dict.fromkeys(path for own in options for path in own):
        values = [own[path] for own in options if path in own]
        if any(value != values[0] for value in values[1:]):
            found.append(path)
    return found


def _label(own: Mapping[str, Any], paths: Sequence[str]) -> str:
    named = (path for path in paths if path in own)
    return ", ".join(
        show(own[path]) if path.endswith(".name") else f"{path.rpartition('.')[2]} {show(own[path])}" for path in named
    )


def _seed(run: RunResult) -> tuple[bool, float]:
    value = run.config.get(SEED)
    return (False, float(value)) if isinstance(value, (int, float)) else (True, 0.0)
