"""The columns of a rounds table as measures: unit, which of two values is better, and how a run is summed up by one.

A measure is a column's name, or that name behind ``best_`` or ``validated_`` (:class:`Measure`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from raysim.config.nearest import did_you_mean
from raysim.errors import ConfigError
from raysim.units import Unit

if TYPE_CHECKING:
    from pandas import DataFrame

Best = Literal["largest", "smallest", ""]
"""Which value is the better one; empty: neither (a number of participants)."""


@dataclass(frozen=True)
class Column:
    """What a column of a rounds table holds."""

    unit: Unit
    best: Best


RATE, SPREAD, LOSS = Column("percent", "largest"), Column("percent", "smallest"), Column("plain", "smallest")
TRAFFIC, COUNT, TIME = Column("bytes", "smallest"), Column("count", ""), Column("seconds", "smallest")
COLUMNS: Mapping[str, Column] = {
    "accuracy": RATE,
    "loss": LOSS,
    "train_loss": LOSS,
    "validation_accuracy": RATE,
    "unseen_accuracy": RATE,
    "balanced_accuracy": RATE,
    "auc": RATE,
    "client_accuracy_mean": RATE,
    "client_accuracy_std": SPREAD,
    "client_accuracy_worst_decile": RATE,
    "tuned_loss": LOSS,
    "tuned_client_accuracy_mean": RATE,
    "tuned_client_accuracy_std": SPREAD,
    "tuned_client_accuracy_worst_decile": RATE,
    "local_loss": LOSS,
    "distribution_shift_loss": LOSS,
    "aggregation_loss": LOSS,
    "distribution_shift_term": LOSS,
    "aggregation_term": LOSS,
    "global_loss": LOSS,
    "virtual_seconds": TIME,
    "joules": Column("plain", "smallest"),
    "staleness": Column("plain", ""),
    "bytes_down": TRAFFIC,
    "bytes_up": TRAFFIC,
    "round": COUNT,
    "local_epochs": COUNT,
    "epochs_total": COUNT,
    "participants": COUNT,
}
"""What the engine measures in every run of any method, but for times, which no two runs share."""
PREFIXES = ("best_", "validated_")


@dataclass(frozen=True)
class Measure:
    """A number that a finished run is summed up by.

    ``accuracy`` is a column's last value; ``best_accuracy`` its best, the largest accuracy or the smallest loss;
    ``validated_accuracy`` its value in the first round with the best validation accuracy.
    """

    name: str
    column: str
    how: Literal["last", "best", "validated"]
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
    columns = {**COLUMNS, **(own or {})}
    prefix = next((start for start in PREFIXES if name.startswith(start) and name not in columns), "")
    column = columns.get(name.removeprefix(prefix))
    if column is None:
        best = [f"best_{name}" for name, column in columns.items() if column.best]
        names = [*columns, *best, *(f"validated_{name}" for name in columns)]
        raise ConfigError(
            f"no measure {name!r}.{did_you_mean(name, names)} Measures: {', '.join(columns)}, each also as best_NAME "
            "or validated_NAME; times are not among them, as no two runs share them. A column that a method reports "
            "itself needs its unit: NAME: {title: TEXT, unit: plain} (percent, plain, bytes or count)."
        )
    if prefix == "best_" and not column.best:
        raise ConfigError(f"no measure {name!r}: of {name.removeprefix(prefix)} no value is better than another.")
    how: Literal["last", "best", "validated"] = "best" if prefix == "best_" else "validated" if prefix else "last"
    return Measure(name, name.removeprefix(prefix), how, column.unit, column.best)
