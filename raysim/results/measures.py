"""The columns of a rounds table as measures: unit, which of two values is better, and how a run is summed up by one.

A measure is a column's name, or that name behind ``best_``, ``validated_`` or ``tail_`` (:class:`Measure`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from raysim import columns
from raysim.columns import Best, Column
from raysim.config.nearest import did_you_mean
from raysim.errors import ConfigError
from raysim.units import Unit

if TYPE_CHECKING:
    from pandas import DataFrame

How = Literal["last", "best", "validated", "tail"]
PREFIXES: Mapping[str, How] = {"best_": "best", "validated_": "validated", "tail_": "tail"}
"""Beginning of a measure's name → how its column is summed up."""
TAIL = 10
"""Judged rounds that a ``tail_`` measure is the mean of."""


@dataclass(frozen=True)
class Measure:
    """A number that a finished run is summed up by.

    ``accuracy`` is a column's last value; ``best_accuracy`` its best, the largest accuracy or the smallest loss;
    ``validated_accuracy`` its value in the first round with the best validation accuracy; ``tail_accuracy`` the mean of
    its last ten values, which varies less than the last one does.
    """

    name: str
    column: str
    how: How
    unit: Unit
    best: Best

    def of(self, rounds: DataFrame) -> float | None:
        """Its value in a run's table of rounds; None if it was not measured in it."""
        if self.column not in rounds:
            return None
        if self.how == "validated":
            if "validation_accuracy" not in rounds:
                return None
            rounds = rounds.dropna(subset=["validation_accuracy"])
            if rounds.empty:
                return None
            value = float(rounds[self.column].iloc[int(rounds["validation_accuracy"].to_numpy().argmax())])
            return None if value != value else value  # NaN: not evaluated in that round
        values = rounds[self.column].dropna()
        if values.empty:
            return None
        if self.how == "tail":
            return float(values.iloc[-TAIL:].mean())
        if self.how == "best":
            return float(values.max() if self.best == "largest" else values.min())
        return float(values.iloc[-1])


def find(name: str, own: Mapping[str, Column] | None = None) -> Measure:
    """The measure of that name.

    Args:
        own: columns beside the engine's, which a method reports itself.

    Raises:
        ConfigError: there is no such measure, or its column has no best value; with the nearest and those allowed.
    """
    known = {name: column for name, column in columns.COLUMNS.items() if not (column.timing or column.parts)}
    known |= own or {}
    prefix = next((start for start in PREFIXES if name.startswith(start) and name not in known), "")
    column = known.get(name.removeprefix(prefix))
    if column is None:
        best = [f"best_{name}" for name, column in known.items() if column.best]
        names = [*known, *best, *(f"{start}{name}" for start in ("validated_", "tail_") for name in known)]
        raise ConfigError(
            f"no measure {name!r}.{did_you_mean(name, names)} Measures: {', '.join(known)}, each also as "
            "best_NAME, validated_NAME or tail_NAME (mean of the last ten); times are not among them, as no two runs "
            "share them. A column that a method reports itself needs its unit: NAME: {title: TEXT, unit: plain} "
            "(percent, plain, bytes or count)."
        )
    if prefix == "best_" and not column.best:
        raise ConfigError(f"no measure {name!r}: of {name.removeprefix(prefix)} no value is better than another.")
    return Measure(name, name.removeprefix(prefix), PREFIXES.get(prefix, "last"), column.unit, column.best)


def column_of(name: str) -> str:
    """The column of the measure of this name: the name without its prefix."""
    return name.removeprefix(next((start for start in PREFIXES if name.startswith(start)), ""))
