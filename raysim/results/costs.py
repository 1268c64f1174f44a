"""The cost of an accuracy: rounds, traffic, virtual time and energy up to the round that first reached it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Accuracies that a run's summary tells the costs of, where it reached them."""


def running_costs(rounds: DataFrame) -> DataFrame:
    """The cost of all rounds up to each one, from a run's table of rounds.

    Returns:
        ``round``, ``bytes`` (sent and received), and for a run in virtual time also ``virtual_seconds`` (since its
        start) and ``joules``; what the table lacks is left out.
    """
    costs = rounds[["round"]]
    if {"bytes_down", "bytes_up"} <= set(rounds):
        costs = costs.assign(bytes=(rounds["bytes_down"] + rounds["bytes_up"]).cumsum())
    if "virtual_seconds" in rounds:
        costs = costs.assign(virtual_seconds=rounds["virtual_seconds"])
    return costs.assign(joules=rounds["joules"].cumsum()) if "joules" in rounds else costs


def cost_of(rounds: DataFrame, accuracy: float) -> dict[str, Any] | None:
    """The costs up to the first round whose test accuracy is at least ``accuracy``; None if no round's is.

    Args:
        rounds: a run's table of rounds.
        accuracy: a share from 0 to 1.
    """
    if "accuracy" not in rounds:
        return None
    reached = np.flatnonzero(rounds["accuracy"].to_numpy(dtype=float) >= accuracy)  # NaN where it was not evaluated
    if not len(reached):
        return None
    return {str(name): values.iloc[int(reached[0])].item() for name, values in running_costs(rounds).items()}


def costs_to_accuracies(rounds: DataFrame) -> list[dict[str, Any]]:
    """A row for each of :data:`LEVELS` that the run reached."""
    found = ((level, cost_of(rounds, level)) for level in LEVELS)
    return [{"accuracy": level, **cost} for level, cost in found if cost is not None]
