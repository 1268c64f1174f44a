"""Several runs sorted by their settings: runs of one setting differ in their seed alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysim.config.all_sections import CHOICES_OF_AUTO
from raysim.config.late_options import in_full
from raysim.config.options import show
from raysim.config.run_config import flatten, options_of
from raysim.errors import ConfigError, DamagedError
from raysim.results.result import RunResult
from raysim.storage.folder_files import printable
from raysim.storage.origin import read_origin
from raysim.storage.proof_file import PROOF_NAME, read_proof

SEED = "seed"
DATA = "workload."
"""Options that say on which data: runs on different data are no pairs, and stand in columns of their own."""
METHOD = "method.name"
REPLAYED = "replayed"
"""Beside the options: how the first rounds of a replay, which it took from another run, differ from its others."""


@dataclass(frozen=True)
class Setting:
    """One setting: what its runs have in common, and the runs, one for each seed."""

    label: str
    """The options in which it differs from the other settings, in a few words."""
    row: str
    """Those that say how is trained: its row in a table."""
    column: str
    """Those of its data; empty where all settings have the same."""
    differing: Mapping[str, str]
    """Option → its value as text, empty where the setting has no such option; the same options for each setting."""
    runs: tuple[RunResult, ...]
    repeated: tuple[RunResult, ...]
    """Runs with a seed that another of its runs has: they say nothing new."""

    @property
    def seeds(self) -> list[str]:
        """The seeds of its runs."""
        return [str(run.config.get(SEED, "?")) for run in self.runs]

    @property
    def is_local(self) -> bool:
        """Whether its clients train alone (method local)."""
        return flatten(self.runs[0].config).get(METHOD) == "local"


def group(results: Sequence[RunResult]) -> list[Setting]:
    """The settings of several runs, in the order of their first runs.

    Placement (actors, output, pictures …) cannot change a result, so it separates nothing. A replay that took rounds
    with other settings is no run of its own settings, but of one beside them. Only the folders' own text is read: of
    the classes that a config names only raysim's own are imported.

    Raises:
        ConfigError: two settings that no option tells apart are of one folder.
        ResultsError: a replay's ``origin.json`` cannot be read.
    """
    groups: dict[str, tuple[dict[str, Any], list[RunResult]]] = {}
    for result, own in zip(results, _options(results), strict=True):
        groups.setdefault(json.dumps(own, sort_keys=True, default=str), (own, []))[1].append(result)
    paths = [path for path in _differing([own for own, _ in groups.values()]) if path != REPLAYED]
    if any(REPLAYED in own for own, _ in groups.values()):  # other runs have no such entry to differ from
        paths.append(REPLAYED)
    places = [_place(own, paths) for own, _ in groups.values()]
    folders = [runs[0].folder.resolve() for _, runs in groups.values()]
    settings = []
    for (row, column), folder, (own, runs) in zip(places, folders, groups.values(), strict=True):
        label = _label(own, paths)
        if not label or places.count((row, column)) > 1:
            name = _name(folder, folders)
            label = ", ".join(filter(None, (label, name)))
            row = f"{row}, {name}" if places.count((row, column)) > 1 else row
        differing = {path: show(own[path]) if path in own else "" for path in paths}
        settings.append(Setting(label, row, column, differing, *_one_a_seed(runs)))
    return settings


def _options(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    """The options of each run that can change a result, and how it began if it is a replay.

    What a run decided itself (``auto``) stands in its place where another of the runs has it from its user.
    """
    ignored = {SEED, *(path for path, option in options_of({}).items() if option.help.placement)}
    found = []
    for result in results:
        own = {path: value for path, value in in_full(flatten(result.config)).items() if path not in ignored}
        origin = read_origin(result.folder)
        rounds, changes = origin.get("rounds"), origin.get("changes")
        if rounds and changes:
            own[REPLAYED] = f"from round {rounds + 1} with {'; '.join(map(str, changes))}"
        found.append(own)
    for path in CHOICES_OF_AUTO:
        if any(own.get(path, "auto") != "auto" for own in found):
            for result, own in zip(results, found, strict=True):
                if own.get(path) == "auto":
                    own[path] = _decision(result.folder, path)
    return found


def _decision(folder: Path, path: str) -> str:
    """The value of an option that a run decided itself, by its proof; ``auto`` where that does not tell."""
    try:
        (opening,) = read_proof(folder / PROOF_NAME, 1)
    except (ValueError, DamagedError):
        return "auto"
    settings = opening.content.get("settings")
    value = settings.get(path) if isinstance(settings, Mapping) else None
    return next((one for one in CHOICES_OF_AUTO[path] if one == value), "auto")


def _name(folder: Path, folders: Sequence[Path]) -> str:
    """The last parts of a folder's path, as many as tell it apart from the others.

    Raises:
        ConfigError: it is among them twice.
    """
    for length in range(1, len(folder.parts) + 1):
        end = folder.parts[-length:]
        if sum(other.parts[-length:] == end for other in folders) == 1:
            return one_line("/".join(end))
    raise ConfigError(f"{one_line(str(folder))} is there twice, with different settings. Give each run its own folder.")


def _place(own: Mapping[str, Any], paths: Sequence[str]) -> tuple[str, str]:
    """The row and the column of a setting; a row without an option of its own has the method's name."""
    row = _label(own, [path for path in paths if not path.startswith(DATA)])
    column = _label(own, [path for path in paths if path.startswith(DATA)])
    return row or one_line(show(own.get(METHOD, "run"))), column


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
    return one_line(
        ", ".join(
            show(own[path]) if path.endswith(".name") else f"{path.rpartition('.')[2]} {show(own[path])}"
            for path in named
        )
    )


def one_line(text: str) -> str:
    """Text of a foreign folder in one line, without signs of control."""
    return " ".join(printable(text).split())


def _seed(run: RunResult) -> tuple[bool, float]:
    value = run.config.get(SEED)
    return (False, float(value)) if isinstance(value, (int, float)) else (True, 0.0)
