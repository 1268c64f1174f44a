"""Whether a run ends before its last round: a measure has reached what was asked for, or has stopped improving.

It is a function of the table of rounds alone, so that a resumed run ends in the same round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from raysim.errors import RaysimError

if TYPE_CHECKING:
    from raysim.config.sections import Evaluation
    from workloads.objective import Objective


class EarlyStopping:
    """Follows one column of the table of rounds."""

    def __init__(self, options: Evaluation, objective: Objective) -> None:
        self._options = options
        self.column = options.measure.removeprefix("-") or ("accuracy" if objective.accurate else "loss")
        # Of a loss less is better.
        self._sign = -1.0 if options.measure.startswith("-") or self.column.endswith("loss") else 1.0
        self.reason = ""
        """Why the run is over; empty if it is not."""
        self.restart(())

    @property
    def asked_for(self) -> bool:
        """Whether the run may end early at all."""
        return self._options.patience > 0 or self._options.stop_at is not None

    def restart(self, rows: Iterable[Mapping[Any, Any]]) -> None:
        """Begin again with these rows of the table."""
        self._best, self._best_round, self._waited, self.reason = -math.inf, 0, 0, ""
        for row in rows:
            self.see(row)

    def see(self, row: Mapping[Any, Any]) -> None:
        """Take a further row of the table.

        Raises:
            RaysimError: the table has no such column.
        """
        if not self.asked_for or self.reason:
            return
        if self.column not in row:
            numbers = ", ".join(name for name, value in row.items() if isinstance(value, float))
            raise RaysimError(
                f"evaluation.measure: the table of rounds has no column {self.column}. Columns of numbers: {numbers}. "
                "Start the run again with one of them"
            )
        value = float(row[self.column])
        if math.isnan(value):  # a round without evaluation
            return
        options, number = self._options, int(row["round"])
        if self._sign * value > self._best:
            self._best, self._best_round, self._waited = self._sign * value, number, 0
        else:
            self._waited += 1
        if options.stop_at is not None and self._sign * (value - options.stop_at) >= 0:
            self.reason = (
                f"{self.column} has reached {value:.6g} in round {number}, and {options.stop_at:g} was asked for"
            )
        elif 0 < options.patience <= self._waited:
            self.reason = (
                f"{self.column} has not been better for {self._waited} evaluations than the {abs(self._best):.6g} of "
                f"round {self._best_round}"
            )
