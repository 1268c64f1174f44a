"""Whether a run ends before its last round: a measure has reached what was asked for, or has stopped improving.

It is a function of the table of rounds alone, so that a resumed run ends in the same round.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from raysim.columns import column_of
from raysim.config.nearest import did_you_mean
from raysim.engine.round_columns import is_share
from raysim.errors import ConfigError

if TYPE_CHECKING:
    from raysim.config.sections import Evaluation
    from raysim.workloads.objective import Objective


class ColumnWatch:
    """Follows one column of the table of rounds until it has reached what was asked for, or stopped improving.

    Args:
        less: smaller values are better.
    """

    def __init__(self, options: Evaluation, column: str, *, less: bool) -> None:
        self._options, self.column = options, column
        self._sign = -1.0 if less else 1.0
        self.reason = ""
        """Why the run is over; empty if it is not."""
        self.restart(())

    def restart(self, rows: Iterable[Mapping[Any, Any]]) -> None:
        """Begin again with these rows of the table."""
        self._best, self._best_round, self._waited, self.reason = -math.inf, 0, 0, ""
        for row in rows:
            self.see(row)

    def see(self, row: Mapping[Any, Any]) -> None:
        """Take a further row of the table."""
        if not self._options.ends_early or self.reason:
            return
        value = float(row.get(self.column, math.nan))
        if math.isnan(value):  # a round without evaluation, or without a client
            return
        options, number = self._options, int(row["round"])
        # The first counts also where it is infinite, as FedProto's loss is while a class has no prototype.
        if self._sign * value > self._best or not self._best_round:
            self._best, self._best_round, self._waited = self._sign * value, number, 0
        else:
            self._waited += 1
        if options.stop_at is not None and self._sign * (value - options.stop_at) >= 0:
            self.reason = (
                f"{self.column} has reached {value:.6g} in round {number}, and {options.stop_at:g} was asked for"
            )
        elif 0 < options.patience <= self._waited:
            best = self._sign * self._best
            self.reason = (
                f"{self.column} has not been better for {self._waited} evaluations than the {best:.6g} of round "
                f"{self._best_round}"
            )


class EarlyStopping(ColumnWatch):
    """The watch of a run, whose objective says which values are better.

    Args:
        columns: those that the table will have and that may be followed (raysim/engine/round_columns.py).

    Raises:
        ConfigError: the table will have no such column, or the column can never be as good as asked for.
    """

    def __init__(self, options: Evaluation, objective: Objective, columns: Collection[str]) -> None:
        column = options.measure.removeprefix("-") or ("accuracy" if objective.accurate else "loss")
        super().__init__(options, column, less=is_less_better(options.measure, column, objective.metrics))
        if options.ends_early:
            self._check(columns, objective)

    def _check(self, columns: Collection[str], objective: Objective) -> None:
        if self.column not in columns:
            raise ConfigError(
                f"evaluation.measure: {self.column} will be no column of the table of rounds."
                f"{did_you_mean(self.column, columns)} Columns of this run: {', '.join(columns)}. Set it to one of "
                f"them; metrics={{{self.column!r}: function}} makes a column of data given in Python, and "
                "Traits(reports=…) names those that a method of your own reports."
            )
        wanted = self._options.stop_at
        if wanted is not None and is_share(self.column, objective) and not 0 <= wanted <= 1:
            percent = f"; for {wanted:g} % set it to {wanted / 100:g}" if 1 < wanted <= 100 else ""
            raise ConfigError(
                f"evaluation.stop_at: {wanted:g} is never reached by {self.column}, which lies between 0 and 1"
                f"{percent}. Allowed: 0 to 1."
            )


def is_less_better(measure: str, column: str, metrics: Collection[str]) -> bool:
    """Whether smaller values of the column are better.

    Args:
        measure: the option ``evaluation.measure``, which may have a minus before the column's name.
        metrics: the columns that a user's own functions make, whatever raysim knows by their names.
    """
    known = column not in metrics and column_of(column).best == "smallest"
    return known or column.endswith("loss") or measure.startswith("-")
