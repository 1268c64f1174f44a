"""Weights stale updates: those that start from an earlier version of the server's state (FedAsync, FedBuff)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from raysim.aggregators.means import PairwiseSum
from raysim.method import NOTHING

if TYPE_CHECKING:
    from raysim.config.timing import Timing
    from raysim.method import Update, Updates, Vector
    from raysim.virtual_time.rules._rule import TimingRule


def staleness_weight(timing: Timing, staleness: int) -> float:
    """s(τ) in (0, 1] for an update that starts τ server steps back; s(0) = 1.

    Source: Xie et al. 2019, Asynchronous Federated Optimization, section 5.2: polynomial (τ + 1)^−a; hinge 1 up to
    τ = b, then 1 / (a (τ − b) + 1). FedBuff (Nguyen et al. 2022, section 5) takes the polynomial with a = 1/2.
    """
    slope, delay = timing.staleness_slope, timing.staleness_delay
    if timing.staleness == "polynomial":
        return float((1 + staleness) ** -slope)
    if timing.staleness == "hinge" and staleness > delay:
        return 1 / (slope * (staleness - delay) + 1)
    return 1.0


def adjusted(
    update: Update, timing: Timing, staleness: int, base: Vector, current: Vector, parameters: int | None = None
) -> Update:
    """The update that the method's ``aggregate`` is given in the place of the client's own.

    The mode says what change of the server's vector it stands for, and s(τ) what that counts.

    Args:
        update: the client's; extras of a method stay as they are.
        staleness: τ, server steps since the client got its message.
        base: θ_τ [d], the vector in that message which the client trained.
        current: θ [d], that vector in the message that the client would get now.
        parameters: p, how many of their entries are parameters; None: all. BatchNorm's running statistics behind them
            are averaged and no step is taken with them: of a stale update they are moved towards the client's, as a
            sum of falls from several old states would make a variance negative.
    """
    rule: TimingRule = timing.rule
    factor = rule.factor(staleness_weight(timing, staleness))
    change = rule.change(update.delta, base, current) if staleness else update.delta
    if staleness and parameters is not None and parameters < change.size:
        towards = (base[parameters:] + update.delta[parameters:]) - current[parameters:]
        change = np.concatenate((change[:parameters], towards))
    if factor == 1 and change is update.delta:
        return update
    return replace(update, delta=change * np.float32(factor))


def weighted(
    updates: Updates,
    timing: Timing,
    bases: Sequence[Vector],
    currents: Iterable[Vector],
    sums: bool,
    parameters: int | None = None,
) -> Updates:
    """Every client's update :func:`adjusted` to its staleness, beside what came of it.

    Args:
        bases: θ_τ of every client [n].
        currents: θ of every client [n].
        sums: whether the method's ``aggregate`` needs only the weighted mean (``Traits.weighted_mean``).
        parameters: as in :func:`adjusted`.
    """
    if timing.rule.equal_weights:
        updates = replace(updates, samples=np.ones_like(updates.samples))
    each = tuple(
        adjusted(update, timing, missed, base, current, parameters)
        for update, missed, base, current in zip(updates.each, updates.staleness, bases, currents, strict=True)
    )
    if not sums:
        return replace(updates, each=each, unweighted=tuple(updates.deltas), bases=tuple(bases))
    total = PairwiseSum()
    for update, count in zip(each, updates.samples.tolist(), strict=True):
        total.add(update.delta * np.float32(count))
    empty = tuple(replace(update, delta=NOTHING) for update in each)
    return replace(updates, each=empty, weighted_total=total.total())
