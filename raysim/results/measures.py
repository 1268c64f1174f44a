"""The columns of a rounds table as measures: unit, which of two values is better, and how a run is summed up by one.

A measure is a column's name, or that name behind ``best_``, ``validated_``, ``average_``, ``tail_`` or ``spread_``, or
before ``_at_epoch_40`` or ``_over_epochs_21_to_40``; the cost of an accuracy (``rounds_to_0.8``); or the gain of
clients over training alone, ``local_gain`` (:class:`Measure`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from raysim import columns
from raysim.columns import Best, Column
from raysim.config.nearest import did_you_mean
from raysim.errors import ConfigError
from raysim.results.costs import cost_of
from raysim.units import Unit

if TYPE_CHECKING:
    from pandas import DataFrame, Series

How = Literal["last", "best", "validated", "average", "tail", "spread", "epochs", "cost", "gain"]
PREFIXES: Mapping[str, How] = {
    "best_": "best",
    "validated_": "validated",
    "average_": "average",
    "tail_": "tail",
    "spread_": "spread",
}
"""Beginning of a measure's name → how its column is summed up."""
GAINS: Mapping[str, Column] = {
    "local_gain": Column("percent", "largest"),
    "local_gain_share": Column("percent", "largest"),
    "tuned_local_gain": Column("percent", "largest"),
    "tuned_local_gain_share": Column("percent", "largest"),
}
"""Measures that pair a run with one of ``--method local``, client by client."""
WHOLE_RUNS = ("epochs", "cost", "gain")
"""How measures are summed up that have no value in each round."""
TAIL = 10
"""Judged rounds that a ``tail_`` measure is the mean of, and a ``spread_`` measure the standard deviation."""
EPOCHS = re.compile(r"(\w+?)_(?:at_epoch_|over_epochs_(\d+)_to_)(\d+)")
"""A measure's name made of its column, the first of some local epochs, unless it is one alone, and the last."""


@dataclass(frozen=True)
class Measure:
    """A number that a finished run is summed up by.

    ``accuracy`` is a column's last value; ``best_accuracy`` its best, the largest accuracy or the smallest loss;
    ``validated_accuracy`` its value in the first round with the best validation accuracy; ``average_accuracy`` the mean
    of all its values, larger where a run learns sooner; ``tail_accuracy`` the mean of its last ten values, which varies
    less than the last one does; ``spread_accuracy`` the standard deviation (n − 1) of these ten, smaller where a curve
    is steadier at its end, and infinite where one of them is.

    ``accuracy_at_epoch_40`` is the value after 40 local epochs, on the straight line between the judged rounds around
    that epoch, and ``accuracy_over_epochs_21_to_40`` the mean of these values, so that methods that communicate at
    different times are compared at equal epochs; None if the first judged round ended after the first of these epochs,
    or the last one before the last; infinite where one of these rounds is.

    ``rounds_to_0.8``, ``bytes_to_0.8``, ``virtual_seconds_to_0.8`` and ``joules_to_0.8`` are the costs up to the first
    round with a test accuracy of at least 80 % (:func:`raysim.results.costs.cost_of`); None where no round has it.

    ``local_gain`` is the mean over clients of their accuracy less what they reach with ``--method local`` and the same
    seed, in the last round in which both runs were judged; ``local_gain_share`` is the share of clients that gain;
    behind ``tuned_`` those of the fine-tuned models. Both runs need ``evaluation.each_client``.
    """

    name: str
    column: str
    how: How
    unit: Unit
    best: Best

    def of(self, rounds: DataFrame, local: DataFrame | None = None) -> float | None:
        """Its value in a run's table of rounds; None if it was not measured in it.

        Args:
            local: the table of a run with method local, for gains.
        """
        if self.name in rounds and self.how in PREFIXES.values():
            return Measure(self.name, self.name, "last", self.unit, self.best).of(rounds)  # a method's own column
        if self.column not in rounds:
            return None
        if self.how == "epochs":
            begin, end = _epochs(self.name)
            judged = rounds.dropna(subset=[self.column])
            return _mean_over_epochs(judged["epochs_total"], judged[self.column], begin, end)
        if self.how == "cost":
            name, _, target = self.name.rpartition("_to_")
            cost: dict[str, Any] = cost_of(rounds, float(target)) or {}
            return cost.get(next(column for column, entry in columns.shown("cost") if entry.cost == name))
        if self.how == "gain":
            if local is None or columns.EACH_CLIENT not in local:
                return None
            own, alone = rounds.set_index("round")[self.column], local.set_index("round")[columns.EACH_CLIENT]
            gains = local_gains(own, alone)
            if not gains:
                return None
            return sum(gain > 0 if self.name.endswith("_share") else gain for gain in gains) / len(gains)
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
        if self.how == "average":
            return float(values.mean())
        if self.how == "tail":
            return float(values.iloc[-TAIL:].mean())
        if self.how == "spread":
            last = values.iloc[-TAIL:]
            return None if len(last) < 2 else float(last.std()) if last.abs().max() < math.inf else math.inf
        if self.how == "best":
            return float(values.max() if self.best == "largest" else values.min())
        return float(values.iloc[-1])


def find(name: str, own: Mapping[str, Column] | None = None) -> Measure:
    """The measure of that name.

    Args:
        own: columns beside the engine's, which a method reports itself.

    Raises:
        ConfigError: there is no such measure, or its column has no best value, with the nearest and those allowed; or
            its epochs end before they begin.
    """
    known = {
        name: column
        for name, column in columns.COLUMNS.items()
        if not (column.timing or column.parts or column.unit == "text")
    }
    known |= own or {}
    if (cost := re.fullmatch(r"(\w+)_to_(0?\.\d+|1|1\.0*)", name)) and name not in known:
        for entry in columns.COLUMNS.values():
            if entry.cost == cost[1]:
                return Measure(name, "accuracy", "cost", entry.unit, "smallest")
    if (gain := GAINS.get(name)) is not None:
        column_name = f"{columns.TUNED * name.startswith(columns.TUNED)}{columns.EACH_CLIENT}"
        return Measure(name, column_name, "gain", gain.unit, gain.best)
    if (found := EPOCHS.fullmatch(name)) and (column := known.get(found[1])) and name not in known:
        first, last = _epochs(name)
        if first > last:
            raise ConfigError(f"no measure {name!r}: the second epoch is smaller than the first. Swap them.")
        return Measure(name, found[1], "epochs", column.unit, column.best)
    prefix = next((start for start in PREFIXES if name.startswith(start) and name not in known), "")
    column = known.get(name.removeprefix(prefix))
    if column is None:
        best = [f"best_{name}" for name, column in known.items() if column.best]
        names = [*known, *best, *(f"{start}{name}" for start in (*PREFIXES,)[1:] for name in known)]
        raise ConfigError(
            f"no measure {name!r}.{did_you_mean(name, names)} Measures: {', '.join(known)}, each also as "
            "best_NAME, validated_NAME, average_NAME (mean of all rounds), tail_NAME (mean of the last ten) or "
            "spread_NAME (their standard deviation), NAME_at_epoch_40 (after 40 local epochs) or "
            "NAME_over_epochs_21_to_40 (mean of these); rounds_to_0.8 or bytes_to_0.8, say, and "
            f"{', '.join(GAINS)}; times are not among them, as no two runs share them. A column that a method reports "
            "itself needs its unit: NAME: {title: TEXT, unit: plain} (percent, plain, bytes or count)."
        )
    if prefix == "best_" and not column.best:
        raise ConfigError(f"no measure {name!r}: of {name.removeprefix(prefix)} no value is better than another.")
    how = PREFIXES.get(prefix, "last")
    return Measure(name, name.removeprefix(prefix), how, column.unit, "smallest" if how == "spread" else column.best)


def _epochs(name: str) -> tuple[int, int]:
    """The first and the last local epoch that the name of a measure says."""
    found = EPOCHS.fullmatch(name)
    assert found is not None
    return int(found[2] or found[3]), int(found[3])


def _mean_over_epochs(epochs: Series, values: Series, first: int, last: int) -> float | None:
    """The mean, over the epochs from first to last, of the line through these values."""
    if values.empty or epochs.iloc[0] > first or epochs.iloc[-1] < last:
        return None
    return float(np.interp(np.arange(first, last + 1), epochs, values).mean())


def local_gains(own: Series, local: Series) -> list[float]:
    """The accuracy of each client less that of its local model, in the last round in which both runs were judged.

    The end of a run that is longer than the other does not count: its clients have trained longer.

    Args:
        own: a run's column ``client_accuracies`` or ``tuned_client_accuracies``, by round.
        local: the column ``client_accuracies`` of a run with method local, by round.
    """
    common = set(own.dropna().index) & set(local.dropna().index)
    if not common:
        return []
    last = max(common)
    first, second = (
        {client: float(value) for client, _, value in (part.partition("=") for part in found[last].split())}
        for found in (own, local)
    )
    return [first[client] - second[client] for client in first if client in second]


def column_of(name: str) -> str:
    """The column of the measure of this name: the name without its prefix or its epoch."""
    name = EPOCHS.sub(r"\1", name)
    return name.removeprefix(next((start for start in PREFIXES if name.startswith(start)), ""))
