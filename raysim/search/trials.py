"""Trials of a search: asked in batches of fixed size, and told in their order.

A batch is asked when all trials before it have been told, so the values that are asked follow from the request alone:
the number of workers, the order in which cells end, and kills change none of them. Nothing is kept but the cells, as a
study keeps them; a repeat asks the same again and finds them there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from raysim.results.measures import Measure
from raysim.search.space import Axis
from raysim.studies import failures
from raysim.studies.checks import check_cell
from raysim.studies.places import cell_table
from raysim.studies.study_file import Cell

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


@dataclass(frozen=True)
class Trial:
    """Values that were asked, and what came of them."""

    number: int
    """From 1."""
    values: Mapping[str, Any]
    """Path → value."""
    cells: tuple[Cell, ...]
    """One for each seed."""
    measured: tuple[float, ...] | None
    """The measure of each; None: a cell failed, or did not measure it."""

    @property
    def value(self) -> float | None:
        """The mean over the seeds."""
        return None if self.measured is None else fmean(self.measured)


def cells_of(search: Search, number: int, values: Mapping[str, Any]) -> tuple[Cell, ...]:
    """The cells of a trial, one for each seed."""
    row = f"trial {number}"
    layers: tuple[Mapping[str, Any], ...] = (search.base, {}, values, {})
    return tuple(
        Cell("", row, seed, layers, search.results / f"trial-{number}-seed{seed}.csv") for seed in search.seeds
    )


def carry_out(
    search: Search,
    compute: Callable[[Sequence[Cell]], object],
    asked: Callable[[], bool],
    batch_ended: Callable[[Sequence[Trial]], None],
) -> list[Trial]:
    """The trials, in their order; fewer if the user wants to stop.

    Args:
        compute: makes cells that are not there.
        asked: whether to stop.
        batch_ended: is called with all trials so far after every batch.
    """
    sampler, done = _sampler(search), list[Trial]()
    distributions = {axis.path: axis.distribution() for axis in search.axes}
    while len(done) < search.trials and not asked():
        count = min(search.batch, search.trials - len(done))
        batch = [sampler.ask(distributions) for _ in range(count)]
        cells = [cells_of(search, trial.number + 1, trial.params) for trial in batch]
        flat = [cell for own in cells for cell in own]
        for cell in flat:
            check_cell(cell)
        missing = [cell for cell in flat if not _settled(cell)]
        if missing:
            compute(missing)
        if asked() or not all(map(_settled, missing)):
            break
        for trial, own in zip(batch, cells, strict=True):
            measured = _measured(own, search.measure)
            made = Trial(trial.number + 1, trial.params, own, measured)
            _tell(sampler, trial, made.value)
            done.append(made)
        batch_ended(done)
    return done


def best_of(trials: Sequence[Trial], measure: Measure) -> Trial | None:
    """The trial with the best value, the earlier of equal ones; None if none has a value."""
    sign = 1 if measure.best == "largest" else -1
    known = [(trial.value, trial) for trial in trials if trial.value is not None]
    return max(known, key=lambda each: sign * each[0])[1] if known else None


def _sampler(search: Search) -> optuna.Study:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # With constant_liar the trials of a batch keep away from one another.
        sampler = optuna.samplers.TPESampler(seed=search.sampler_seed, constant_liar=True)
    largest = search.measure.best == "largest"
    return optuna.create_study(direction="maximize" if largest else "minimize", sampler=sampler)


def _tell(sampler: optuna.Study, trial: optuna.Trial, value: float | None) -> None:
    from optuna.trial import TrialState

    if value is None:
        sampler.tell(trial, state=TrialState.FAIL)
    else:
        sampler.tell(trial, value)


def _settled(cell: Cell) -> bool:
    """Whether its row is there, or that of its failure, which counts as an answer too."""
    return cell.path.exists() or failures.place(cell).exists()


def _measured(cells: Sequence[Cell], measure: Measure) -> tuple[float, ...] | None:
    found = [measure.of(cell_table(cell.path)) if cell.path.exists() else None for cell in cells]
    known = tuple(value for value in found if value is not None)
    return known if len(known) == len(found) else None
