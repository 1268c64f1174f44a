"""Searches from which options of the two groups were taken: by validation data, and with equal numbers of trials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysim.config.config_file import read_config_file, read_plain
from raysim.config.options import show
from raysim.config.run_config import settings as settings_of
from raysim.errors import ConfigError
from raysim.judge.options import allowed, differing
from raysim.judge.refusals import Refusal, listed, of_one
from raysim.judge.runs import Side
from raysim.results.measures import Measure, find
from raysim.search.command import FILE as SEARCH
from raysim.search.trials import Trial, best_of
from raysim.studies import choosing, failures
from raysim.studies.command import FILE as STUDY
from raysim.studies.places import cell_table
from raysim.studies.study_file import Study
from raysim.studies.study_file import read as read_study
from raysim.studies.tables import outcomes
from raysim.units import counted

TRIAL = re.compile(r"trial-(\d+)-seed(\d+)(?:-rounds(\d+))?\.yaml")
ROUNDS = "schedule.rounds"


@dataclass(frozen=True)
class Tuning:
    """A search for one group: its trials, and the settings that it chose."""

    place: Path
    measure: Measure
    tried: Sequence[Mapping[str, Any]]
    """The settings of each trial; of one that was not trained to its end those of its last rung."""
    seeds: int
    """Number of seeds of each trial."""
    chosen: Mapping[str, Any] | None
    """The settings with the best mean on validation data; None where no trial has a value."""

    @property
    def budget(self) -> str:
        """The number of runs, as it is said and compared."""
        rounds = self.seeds * sum(trial[ROUNDS] for trial in self.tried)
        return f"{counted(len(self.tried), 'trial')} × {counted(self.seeds, 'seed')}, {counted(rounds, 'round')}"


def full_names(tuned: Sequence[str], side: Side) -> list[str]:
    """The paths of options that are named in full or by their last part.

    Raises:
        ConfigError: there is no such option in the runs.
    """
    found = list[str]()
    for name in tuned:
        plain = name.replace("-", "_")
        paths = [path for path in side.first.settings if path == plain or path.rpartition(".")[2] == plain]
        if len(paths) != 1:
            known = [path for path in side.first.settings if path.startswith("training.")]
            raise ConfigError(
                f"--tuned {name}: {'no' if not paths else 'more than one'} option. Allowed: {listed(known)}."
            )
        found += paths
    return found


def refusals(a: Side, b: Side, subject: str, tuned: Sequence[str], found: Sequence[Tuning | None]) -> Iterator[Refusal]:
    """Reasons why tuned options do not count as equally tuned.

    Args:
        subject: the section in which the groups may differ.
        tuned: paths of the options.
        found: the search of each group; None: none was named.
    """
    if not tuned:
        return
    name = tuned[0]
    if not all(found):
        a_text, b_text = (f"has {one.budget}" if one else "names no search" for one in found)
        why = f"Without a search {name} may have been chosen by test data, or longer for one side."
        advice = "Name both: --search-a FOLDER --search-b FOLDER, of raysim.search or of a study with --choose."
        yield Refusal("tuning without evidence", "--tuned", a_text, b_text, why, advice)
        return
    for side, own in zip((a, b), found, strict=True):
        if own is not None:
            yield from _of_side(side, subject, tuned, own)
    first, second = found
    if first and second:
        yield from _between(a, subject, tuned, first, second)


def _of_side(side: Side, subject: str, tuned: Sequence[str], own: Tuning) -> Iterator[Refusal]:
    """Reasons that lie in the search of one group."""
    searched = {*tuned, *_varied(own)}
    for path, value in _told_by(side, subject, tuned).items():
        if own.tried and path in own.tried[0] and path not in searched and own.tried[0][path] != value:
            text = f"ran with {path} {show(value)}, and its search with {show(own.tried[0][path])}"
            why = "What is best for another setting tells nothing of this one."
            yield of_one(side.letter, "search settings", own.place, text, why, "Name the search of this setting.")
            return
    if not choosing.by_validation(own.measure):
        value = f"chose by {own.measure.name}"
        why = "Test data chose, and would judge what it chose."
        advice = "Search by validation_accuracy (--validation_share 0.2 say) and run again with what it chooses."
        yield of_one(side.letter, "test data for choosing", own.place, value, why, advice)
        return
    chosen = own.chosen or {}
    for path in tuned:
        used = side.first.settings.get(path)
        if not _equal(chosen.get(path), used):
            value = f"ran with {path} {show(used)}, and its search chose {show(chosen.get(path))}"
            why = "Another value than the chosen one was taken for another reason, its test result say."
            advice = "Run with the chosen value."
            yield of_one(side.letter, "value that was not chosen", own.place, value, why, advice)


def _between(a: Side, subject: str, tuned: Sequence[str], first: Tuning, second: Tuning) -> Iterator[Refusal]:
    """Reasons that lie in what one search had and the other had not."""
    places = f"{first.place}, {second.place}"
    if first.budget != second.budget:
        why = "The side with more trials had the larger budget."
        texts = f"had {first.budget}", f"had {second.budget}"
        yield Refusal("trials", places, *texts, why, "Search both sides with as many trials and seeds.")
    if first.tried and second.tried:
        found = differing(first.tried[0], second.tried[0])
        kept = set(a.first.settings)
        other = {
            path: values
            for path, values in found.items()
            if path in kept
            and path != ROUNDS
            and not allowed(path, subject, tuned)
            and path not in _varied(first, second)
        }
        if other:
            one, two = ("; ".join(f"{path} {own[side]}" for path, own in other.items()) for side in (0, 1))
            why = "One search had other conditions than the other."
            advice = f"Search both sides with the same {listed(other)}."
            yield Refusal("search settings", places, one, two, why, advice)


def _varied(*searches: Tuning) -> set[str]:
    """The options that a search tried several values of."""
    return {path for own in searches for trial in own.tried[1:] for path in differing(own.tried[0], trial)}


def _equal(one: object, other: object) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= 1e-12 * max(abs(one), abs(other))
    return one == other


def read(folder: Path, side: Side, trusted: Sequence[Path], subject: str, tuned: Sequence[str]) -> Tuning:
    """The search in a folder, of ``raysim.search`` or of a study that chooses.

    Args:
        subject: the section in which the groups may differ, whose settings tell the group's rows of a study.
        tuned: paths of the options that were searched.

    Raises:
        ConfigError: there is none, or it has nothing of this group's method.
    """
    if (folder / SEARCH).is_file():
        return _search(folder)
    if (folder / STUDY).is_file():
        return _study(read_study(folder / STUDY, trusted), _told_by(side, subject, tuned))
    raise ConfigError(
        f"{folder}: neither {SEARCH} (raysim.search) nor {STUDY} (raysim.study with --choose) is in it. Name the "
        "--output of the search."
    )


def _search(folder: Path) -> Tuning:
    """A search of ``raysim.search``: whatever its table says, the best trial is found from its cells."""
    request = read_plain(folder / SEARCH, f"{folder}: there is no {SEARCH}.")
    if not isinstance(request, dict):
        raise ConfigError(f"{folder / SEARCH}: it holds no request of raysim.search.")
    measure = find(str(request.get("measure")))
    last = _last_cells(folder / "results")
    seeds = {seed for _, seed in last}
    tried, values = dict[int, Mapping[str, Any]](), dict[int, list[float]]()
    for (number, _), path in sorted(last.items()):
        tried[number] = read_config_file(path)
        rows = path.with_suffix(".csv")
        if rows.exists() and (value := measure.of(cell_table(rows))) is not None:
            values.setdefault(number, []).append(value)
    end = _last_rung(request, last.values(), tried.values())
    trials = list[Trial]()
    for number, own in sorted(tried.items()):
        measured = tuple(values.get(number, ()))
        whole = len(measured) == len(seeds)
        trials.append(Trial(number, own, (), measured if whole else None, pruned=own[ROUNDS] < end))
    best = best_of(trials, measure)
    return Tuning(folder, measure, [trial.values for trial in trials], len(seeds), best.values if best else None)


def _last_rung(request: Mapping[str, Any], cells: Iterable[Path], tried: Iterable[Mapping[str, Any]]) -> int:
    """The rounds of a trial that was trained to its end with successive halving; 0 without, where each has its own."""
    found = request.get("rungs")
    rungs = [rung for rung in found if isinstance(rung, int)] if isinstance(found, list) else []
    halved = rungs or any((match := TRIAL.fullmatch(path.name)) and match[3] for path in cells)
    return max([*rungs, *(trial[ROUNDS] for trial in tried)], default=0) if halved else 0


def _last_cells(results: Path) -> dict[tuple[int, int], Path]:
    """(Trial, seed) → the file with its settings, of a trial with rungs that of its last one."""
    found = dict[tuple[int, int], tuple[int, Path]]()
    for path in results.glob("trial-*.yaml"):
        if match := TRIAL.fullmatch(path.name):
            key, rung = (int(match[1]), int(match[2])), int(match[3] or 0)
            found[key] = max(found.get(key, (-1, path)), (rung, path))
    return {key: path for key, (_, path) in found.items()}


def _told_by(side: Side, subject: str, tuned: Sequence[str]) -> dict[str, object]:
    """The settings by which a group's rows of a study are told from the other group's."""
    name = {"method.name": side.first.settings["method.name"]}
    if subject == "method":  # its options may have been searched
        return name
    of_subject = {path: value for path, value in side.first.settings.items() if path.startswith(f"{subject}.")}
    return name | {path: value for path, value in of_subject.items() if path not in tuned}


def _study(study: Study, told_by: Mapping[str, object]) -> Tuning:
    """The rows of a study among which one is chosen, of the group's settings."""
    if study.choice is None:
        raise ConfigError(f"{study.path}: it chooses nothing. Name a study with --choose, or a search.")
    configs = {cell.row: settings_of(cell.config()) for cell in study.cells()}
    own = {row for row, found in configs.items() if all(found.get(path) == value for path, value in told_by.items())}
    asked = [cell for cell in study.cells() if cell.row in own]
    if left := [cell for cell in asked if not cell.path.exists() and not failures.place(cell).exists()]:
        raise ConfigError(
            f"{study.path}: {counted(len(left), 'cell')} of what was to be tried {'is' if len(left) == 1 else 'are'} "
            f"not there ({left[0].name} first), so that less was tried than the file says. Run the study to its end."
        )
    picks = choosing.picked(outcomes(study, {}), study.choice, study.seeds)
    rows = [row for row in picks.values() if row in own]
    if len(set(rows)) > 1 or not own:
        wanted = ", ".join(f"{path} {value}" for path, value in told_by.items())
        raise ConfigError(f"{study.path}: {'no row' if not own else 'several chosen rows'} with {wanted}.")
    chosen = configs[rows[0]] if rows else None
    seeds = sum(len(own) for own in study.seeds.values())
    return Tuning(study.path, study.choice.measure, [configs[row] for row in sorted(own)], seeds, chosen)
