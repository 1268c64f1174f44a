"""Rows of a grid among which the best is chosen on validation data, so that a table has one row a method."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from raysim.columns import VALIDATION
from raysim.comparison.outcomes import Outcomes
from raysim.errors import ConfigError
from raysim.results.measures import Measure
from raysim.units import counted

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig


@dataclass(frozen=True)
class Choice:
    """Rows of a grid of which the best is chosen on validation data."""

    measure: Measure
    groups: Mapping[str, tuple[str, str]]
    """Row of the grid → row of the table, and the options that are chosen with their values."""

    @property
    def rows(self) -> dict[str, list[str]]:
        """Row of the table → the rows of the grid among which one is chosen."""
        found: dict[str, list[str]] = {}
        for row, (group, _) in self.groups.items():
            found.setdefault(group, []).append(row)
        return found


def by_validation(measure: Measure) -> bool:
    """Whether a measure is of validation data alone, so that it may choose what test data judges."""
    return measure.column.startswith(VALIDATION) and measure.how != "validated"


def check_measure(key: str, measure: Measure) -> None:
    """ConfigError for a measure of test data, which may not choose; ``key`` names it in the message."""
    if not by_validation(measure):
        raise ConfigError(
            f"{key} {measure.name}: a search may not choose by test data, or what it finds would be judged by what "
            f"chose it. Allowed: {VALIDATION}accuracy, {VALIDATION}loss, or best_ before them."
        )


def check_run(config: RunConfig) -> None:
    """ConfigError for a run without validation data to choose it by, or that test data may end early.

    Args:
        config: of a run that is chosen or not.
    """
    if getattr(config.workload, "validation_share", None) == 0:
        raise ConfigError(
            "workload.validation_share: 0, so there is no validation data to choose by. Set it, --validation_share 0.2 "
            "say."
        )
    if config.evaluation.ends_early and not config.evaluation.measure.startswith(VALIDATION):
        raise ConfigError(
            "evaluation.measure: runs of a search may not end early by test data. Set it to validation_accuracy, or "
            "leave evaluation.patience and evaluation.stop_at out."
        )


def check_judged(key: str, measure: Measure, place: str, columns: Collection[str]) -> None:
    """ConfigError for a finished run without the column that chooses: its data have no such validation.

    Args:
        key: the option or the key that names the measure, for the message.
        place: column, row and seed of the run.
        columns: those of its table of rounds.
    """
    if measure.column not in columns:
        there = [name for name in columns if name.startswith(VALIDATION)]
        raise ConfigError(
            f"{key} {measure.name}: the run {place} has no column {measure.column}. Columns of validation data that it "
            f"has: {', '.join(there) or 'none'}. Choose by one of them, which all runs have."
        )


def picked(outcomes: Outcomes, choice: Choice, seeds: Mapping[str, Sequence[int]]) -> dict[tuple[str, str], str]:
    """(Row of the table, column) → the row of the grid with the best mean over seeds, the first of equal ones.

    A row that lacks a seed (its run failed, or is not there yet) is not chosen.

    Args:
        outcomes: those of all rows of the grid, the measure of the choice among their values.
        seeds: column → its seeds.
    """
    sign, found = 1 if choice.measure.best == "largest" else -1, dict[tuple[str, str], str]()
    for (group, rows), column in itertools.product(choice.rows.items(), outcomes.columns):
        known = {row: outcomes.values.get((row, column, choice.measure.name), {}) for row in rows}
        means = {row: sign * fmean(own.values()) for row, own in known.items() if set(own) == set(seeds[column])}
        if means:
            found[group, column] = max(means, key=lambda row: means[row])
    return found


def chosen(outcomes: Outcomes, choice: Choice, seeds: Mapping[str, Sequence[int]]) -> tuple[Outcomes, list[str]]:
    """The outcomes with one row for each group, the one that was picked, and a sentence on the choices.

    Arguments as of :func:`picked`.
    """
    best = picked(outcomes, choice, seeds)
    values = {
        (group, column, measure): own
        for (group, column), row in best.items()
        for (other, of, measure), own in outcomes.values.items()
        if (row, column) == (other, of)
    }
    lost = {
        (group, column): count
        for group, rows in choice.rows.items()
        for column in outcomes.columns
        if (count := sum(outcomes.failed.get((row, column), 0) for row in rows))
    }
    words: dict[str, dict[str, list[str]]] = {}
    for (group, column), row in best.items():
        words.setdefault(group, {}).setdefault(choice.groups[row][1], []).append(column)
    texts = [f"{group}: {_words(own)}" for group, own in words.items()]
    about = f"Chosen by the mean of {choice.measure.name} over the seeds, on validation data"
    sentence = [f"{about}: {'; '.join(texts)}."] if texts else []
    return replace(outcomes, rows=tuple(choice.rows), values=values, failed=lost, chosen=True), sentence


def _words(own: Mapping[str, Sequence[str]]) -> str:
    """The options that were chosen for a row; by column where these differ."""
    if len(own) == 1:
        return next(iter(own)) or "the only one"
    return ", ".join(f"{text or 'the only one'} ({', '.join(columns)})" for text, columns in own.items())


def budget(rounds: Mapping[str, Sequence[Sequence[int]]], columns: int) -> str:
    """The sentence on what every row of the table was given: settings × seeds × rounds.

    Args:
        rounds: row of the table → of each of its settings the planned rounds of every run, over columns and seeds.
    """
    texts = {row: _spent(own, columns) for row, own in rounds.items()}
    if len({sum(map(sum, own)) for own in rounds.values()}) == 1 and len(set(texts.values())) == 1:
        return f"Budget of each row: {next(iter(texts.values()))}."
    listed = "; ".join(f"{row}: {text}" for row, text in texts.items())
    return f"The rows had different budgets, so that more was tried for some than for others: {listed}."


def _spent(settings: Sequence[Sequence[int]], columns: int) -> str:
    runs = list(itertools.chain(*settings))
    total, each = f"{sum(runs):,} rounds", counted(len(settings[0]), "seed" if columns == 1 else "run")
    text = f"{counted(len(settings), 'setting')} × {each}"
    return f"{text}, {total}" if len({*runs}) > 1 else f"{text} × {counted(runs[0], 'round')} = {total}"
