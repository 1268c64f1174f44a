"""Successive halving: a batch of trials is a bracket, and at every rung the best of its trials are trained longer.

Source: Jamieson and Talwalkar 2016, Non-stochastic best arm identification and hyperparameter optimization, figure 1.

Optuna's ``SuccessiveHalvingPruner`` decides when a trial reports, by the trials that happen to be there already
(Li et al. 2020, ASHA), so that its table would depend on the number of workers. Here a rung is a barrier: all trials
that reached it are compared at once, in their order, and the decision follows from the request alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raysim.errors import ConfigError
from raysim.schedule import common_rounds, planned_intervals

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig

ROUNDS = "schedule.rounds"
FIXED = (ROUNDS, "schedule.epochs", "schedule.intervals", "evaluation.every")
"""Options that cannot be searched with halving: rungs are rounds of one schedule."""


@dataclass(frozen=True)
class Bracket:
    """The rungs that each batch of trials climbs."""

    factor: int
    """At each rung the best 1/factor of its trials go on, at least one."""
    rungs: tuple[int, ...]
    """Rounds after which trials are compared, ascending; the last are those of the whole run."""

    def sizes(self, trials: int) -> list[int]:
        """How many trials of a bracket reach each rung, if none of them fails."""
        found = [trials]
        for _ in self.rungs[1:]:
            found.append(self.promoted(found[-1]))
        return found

    def promoted(self, trials: int) -> int:
        """How many of the trials that were begun on a rung go on to the next."""
        return max(1, trials // self.factor)

    def best(self, values: Sequence[float | None], *, largest: bool) -> list[int]:
        """The places of the trials that go on, ascending; of equal trials the earlier one.

        Args:
            values: the measure of each trial on the rung; None: it failed, and does not go on.
        """
        sign = -1 if largest else 1
        order = sorted((sign * value, place) for place, value in enumerate(values) if value is not None)
        return sorted(place for _, place in order[: self.promoted(len(values))])


def bracket_of(config: RunConfig, factor: int, batch: int, first: int | None) -> Bracket:
    """The bracket of a search.

    Args:
        config: of its runs.
        factor: one of that many trials goes on at a rung.
        batch: trials in a bracket.
        first: rounds of the first rung; None: such that one trial alone trains all rounds.

    Raises:
        ConfigError: the runs' rounds do not allow it, or the batch is too small.
    """
    rounds, every = len(planned_intervals(config)), config.evaluation.every
    if batch < factor:
        raise ConfigError(f"--batch {batch}: a bracket needs at least as many trials as --halving {factor} compares.")
    if config.schedule.epochs:
        raise ConfigError("schedule.epochs: rungs are rounds; give schedule.rounds in its place, or no --halving.")
    if first is not None and (first % every or first >= rounds):
        raise ConfigError(
            f"--first-rung {first}: not allowed. Allowed: a multiple of evaluation.every ({every}) below the "
            f"{rounds} rounds of a run."
        )
    rungs = _from_the_end(rounds, every, factor, batch) if first is None else _from(first, rounds, factor)
    if len(rungs) == 1:
        raise ConfigError(
            f"--halving {factor}: runs of {rounds} rounds that are judged every {every} have no rung before their end. "
            "Raise schedule.rounds, or lower evaluation.every."
        )
    for rung in rungs[:-1]:
        if common_rounds(config, rung) < rung:
            raise ConfigError(
                f"--halving {factor}: a run of {rounds} rounds does not begin with the rounds of one of {rung}, as "
                "the method's options, its intervals or privacy.epsilon follow from the number of rounds. Leave "
                "--halving out."
            )
    return Bracket(factor, rungs)


def _from_the_end(rounds: int, every: int, factor: int, batch: int) -> tuple[int, ...]:
    """Rungs at 1/factor, 1/factor² … of all rounds, as many as it takes until one trial is left."""
    found, left, share = {rounds}, batch, 1
    while left >= factor:
        left, share = left // factor, share * factor
        found.add(min(rounds, every * math.ceil(rounds / share / every)))
    return tuple(sorted(found))


def _from(first: int, rounds: int, factor: int) -> tuple[int, ...]:
    found = [first]
    while found[-1] * factor < rounds:
        found.append(found[-1] * factor)
    return (*found, rounds)
