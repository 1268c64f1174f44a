"""Trials of a search: asked in batches of fixed size, and told in their order.

A batch is asked when all trials before it have been told, so the values that are asked follow from the request alone:
the number of workers, the order in which cells end, and kills change none of them. Nothing is kept but the cells, as a
study keeps them; a repeat asks the same again and finds them there.

With successive halving (:mod:`raysim.search.halving`) a trial has a cell for each rung that it reaches. All of them are
one run, which goes on from its last checkpoint, and whose folder is kept until the trial is pruned or at its end.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from raysim.config.config_file import OBSERVER
from raysim.errors import ConfigError, RaysimError
from raysim.results.measures import Measure
from raysim.search.halving import ROUNDS, Bracket
from raysim.search.space import Axis
from raysim.studies import failures, sources
from raysim.studies.checks import check_cell
from raysim.studies.choosing import check_judged
from raysim.studies.places import cell_table
from raysim.studies.study_file import EXPERIMENT, Cell

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class Search:
    """A request."""

    base: Mapping[str, Any]
    """Options of all runs."""
    axes: tuple[Axis, ...]
    trials: int
    batch: int
    """Trials that are asked at once."""
    seeds: tuple[int, ...]
    measure: Measure
    sampler_seed: int
    results: Path
    bracket: Bracket | None = None
    """The rungs that each batch climbs; None: all trials train all rounds."""

    @property
    def largest(self) -> bool:
        """Whether the best value is the largest."""
        return self.measure.best == "largest"


@dataclass(frozen=True)
class Trial:
    """Values that were asked, and what came of them."""

    number: int
    """From 1."""
    values: Mapping[str, Any]
    """Path → value."""
    cells: tuple[Cell, ...]
    """One for each seed, of the last rung that was begun."""
    measured: tuple[float, ...] | None
    """The measure of each; None: a cell failed, or did not measure it."""
    rungs: tuple[tuple[int, float], ...] = ()
    """Rounds and mean of every rung that the trial reached."""
    trained: int = 0
    """Rounds that its runs really trained, together."""
    pruned: bool = False
    """Whether it was not trained to the end, as others of its bracket were better."""

    @property
    def value(self) -> float | None:
        """The mean over the seeds."""
        return None if self.measured is None else fmean(self.measured)


def cells_of(search: Search, number: int, values: Mapping[str, Any], rung: int | None = None) -> tuple[Cell, ...]:
    """The cells of a trial, one for each seed; those of a rung train until then and keep their runs' folders."""
    own = values if rung is None else {**values, ROUNDS: rung}
    # To a tracker a search is an experiment, as a study is.
    experiment = {EXPERIMENT: search.results.parent.name} if OBSERVER in search.base else {}
    layers: tuple[Mapping[str, Any], ...] = ({**experiment, **search.base}, {}, own, {})
    found = list[Cell]()
    for seed in search.seeds:
        name, row = f"trial-{number}-seed{seed}", f"trial {number}"
        if rung is None:
            found.append(Cell("", row, seed, layers, search.results / f"{name}.csv"))
        else:
            path, folder = search.results / f"{name}-rounds{rung}.csv", search.results / f".{name}.run"
            found.append(Cell("", f"{row} to round {rung}", seed, layers, path, folder=folder))
    return tuple(found)


def carry_out(
    search: Search,
    compute: Callable[[Sequence[Cell]], Mapping[str, str]],
    asked: Callable[[], bool],
    batch_ended: Callable[[Sequence[Trial]], None],
) -> list[Trial]:
    """The trials, in their order; fewer if the user wants to stop.

    Args:
        compute: makes cells that are not there; name → reason of each that failed.
        asked: whether to stop.
        batch_ended: is called with all trials so far after every batch.
    """
    sampler, done = _sampler(search), list[Trial]()
    distributions = {axis.path: axis.distribution() for axis in search.axes}
    while len(done) < search.trials and not asked():
        count = min(search.batch, search.trials - len(done))
        batch = [sampler.ask(distributions) for _ in range(count)]
        made = _climbed(search, [(trial.number + 1, trial.params) for trial in batch], compute, asked)
        if made is None:
            break
        for trial, own in zip(batch, made, strict=True):
            _tell(sampler, trial, own)
        done += made
        batch_ended(done)
    return done


def _climbed(
    search: Search,
    batch: Sequence[tuple[int, Mapping[str, Any]]],
    compute: Callable[[Sequence[Cell]], Mapping[str, str]],
    asked: Callable[[], bool],
) -> list[Trial] | None:
    """The trials of a batch at their ends; None if the user wants to stop before.

    Args:
        batch: number and values of each.
    """
    rungs = (None,) if search.bracket is None else search.bracket.rungs
    found: dict[int, Trial] = {}
    left = dict(batch)
    for rung in rungs:
        cells = {number: cells_of(search, number, values, rung) for number, values in left.items()}
        if not _made([cell for own in cells.values() for cell in own], compute, asked):
            return None
        for number, values in left.items():
            found[number] = _reached(search, found.get(number), Trial(number, values, cells[number], None), rung)
        if search.bracket is None or rung == rungs[-1]:
            break
        places = search.bracket.best([found[number].value for number in left], largest=search.largest)
        going = [[*left][place] for place in places]
        for number in left.keys() - going:
            found[number] = replace(found[number], pruned=found[number].value is not None)
            _let_go(found[number])
        left = {number: left[number] for number in going}
    for number in left:
        _let_go(found[number])
    return [*found.values()]


def _made(
    cells: Sequence[Cell], compute: Callable[[Sequence[Cell]], Mapping[str, str]], asked: Callable[[], bool]
) -> bool:
    """Whether all cells are there, or failed, after those that were missing have been computed."""
    for cell in cells:
        check_cell(cell)
    sources.check(cells)
    missing = [cell for cell in cells if not _settled(cell)]
    for cell in missing:
        try:
            cell.config()
        except ConfigError as error:  # values that no run can have together
            cell.path.parent.mkdir(parents=True, exist_ok=True)
            failures.keep(cell, cell.path.with_suffix(""), str(error))
    if possible := [cell for cell in missing if not _settled(cell)]:
        failed = compute(possible)
        if (lost := [cell for cell in possible if cell.name in failed and not _settled(cell)]) and not asked():
            raise RaysimError(f"{lost[0].name}: {failed[lost[0].name]}")
    return not asked() and all(map(_settled, missing))


def _reached(search: Search, before: Trial | None, trial: Trial, rung: int | None) -> Trial:
    """The trial with what its cells have, and what it had on earlier rungs."""
    measured = _measured(trial.cells, search.measure)
    rungs = before.rungs if before else ()
    if rung is not None and measured is not None:
        rungs = (*rungs, (rung, fmean(measured)))
    return replace(trial, measured=measured, rungs=rungs, trained=sum(map(_trained, trial.cells)))


def _let_go(trial: Trial) -> None:
    """Remove the folders of a trial's runs, which do not go on."""
    for cell in trial.cells:
        if cell.folder is not None:
            shutil.rmtree(cell.folder, ignore_errors=True)


def best_of(trials: Sequence[Trial], measure: Measure) -> Trial | None:
    """The trial with the best value after all rounds, the earlier of equal ones; None if none has a value."""
    sign = 1 if measure.best == "largest" else -1
    known = [(trial.value, trial) for trial in trials if trial.value is not None and not trial.pruned]
    return max(known, key=lambda each: sign * each[0])[1] if known else None


def _sampler(search: Search) -> optuna.Study:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # With constant_liar the trials of a batch keep away from one another.
        sampler = optuna.samplers.TPESampler(seed=search.sampler_seed, constant_liar=True)
    return optuna.create_study(direction="maximize" if search.largest else "minimize", sampler=sampler)


def _tell(sampler: optuna.Study, trial: optuna.Trial, made: Trial) -> None:
    from optuna.trial import TrialState

    for rung, value in made.rungs:
        trial.report(value, rung)
    if made.pruned or made.value is None:
        sampler.tell(trial, state=TrialState.PRUNED if made.pruned else TrialState.FAIL)
    else:
        sampler.tell(trial, made.value)


def _settled(cell: Cell) -> bool:
    """Whether its row is there, or that of its failure, which counts as an answer too."""
    return cell.path.exists() or failures.place(cell).exists()


def _measured(cells: Sequence[Cell], measure: Measure) -> tuple[float, ...] | None:
    """The measure of each cell; None where one failed, or has no value.

    Raises:
        ConfigError: a finished one lacks the measure's column.
    """
    found = list[float]()
    for cell in cells:
        rounds = cell_table(cell.path) if cell.path.exists() else None
        if rounds is not None:
            check_judged("--measure", measure, cell.name, rounds.columns)
        if rounds is None or (value := measure.of(rounds)) is None:
            return None
        found.append(value)
    return tuple(found)


def _trained(cell: Cell) -> int:
    """Rounds of a cell's run, of one that failed those before."""
    return len(cell_table(cell.path)) if cell.path.exists() else failures.read(cell).round - 1
