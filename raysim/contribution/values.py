"""Values of clients from utilities of coalitions: Shapley values, exact or sampled, and leave-one-out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raysim.comparison.differences import mean_difference

if TYPE_CHECKING:
    import numpy as np

Utility = Callable[[frozenset[int]], float]
Ahead = Callable[[Sequence[frozenset[int]]], None]
"""Is told of coalitions whose utilities are asked for next, and may compute them side by side."""


def _one_by_one(coalitions: Sequence[frozenset[int]]) -> None:
    """Leave them to be computed when they are asked for."""


@dataclass(frozen=True)
class Value:
    """One client's value, with the interval that holds it where it was sampled."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Sampled:
    """Shapley values estimated from random orders."""

    values: Mapping[int, Value]
    truncated: int
    """Marginal contributions that were taken as zero; the intervals know nothing of what that leaves out."""


def leave_one_out(clients: Sequence[int], utility: Utility, ahead: Ahead = _one_by_one) -> dict[int, Value]:
    """v(N) − v(N∖i) of every client i."""
    everyone = frozenset(clients)
    ahead([everyone, *(everyone - {client} for client in clients)])
    whole = utility(everyone)
    return {client: Value(whole - utility(everyone - {client})) for client in clients}


def shapley(clients: Sequence[int], utility: Utility, ahead: Ahead = _one_by_one) -> dict[int, Value]:
    """The Shapley values of all clients N, from the utilities of all 2^n coalitions.

    φ_i = Σ_{S ⊆ N∖i} |S|! (n − |S| − 1)! / n! · (v(S ∪ i) − v(S)). Source: Shapley 1953, A value for n-person games.
    """
    count = len(clients)
    ahead([frozenset(members) for size in range(count + 1) for members in itertools.combinations(clients, size)])
    weights = [1 / (count * math.comb(count - 1, size)) for size in range(count)]
    found = {}
    for client in clients:
        others = [other for other in clients if other != client]
        terms = [
            weights[size] * (utility(frozenset({*members, client})) - utility(frozenset(members)))
            for size in range(count)
            for members in itertools.combinations(others, size)
        ]
        found[client] = Value(math.fsum(terms))
    return found


def sampled_shapley(
    clients: Sequence[int],
    utility: Utility,
    orders: int,
    generator: np.random.Generator,
    tolerance: float = 0.0,
    ahead: Ahead = _one_by_one,
) -> Sampled:
    """Shapley values as means of marginal contributions over random orders of the clients, each with its 95 % interval.

    Source: Ghorbani and Zou 2019, Data Shapley, Algorithm 1 (TMC-Shapley). Departure: nothing is truncated unless a
    tolerance is given, and a fixed number of orders is drawn, so that intervals of Student's t hold.

    Args:
        orders: how many are drawn, at least 2.
        tolerance: once a coalition's utility is as near to that of all clients, the rest of an order counts as zero.
    """
    ahead([frozenset(), frozenset(clients)])
    nothing, whole = utility(frozenset()), utility(frozenset(clients))
    drawn = [[clients[place] for place in generator.permutation(len(clients)).tolist()] for _ in range(orders)]
    marginals: list[dict[int, float]] = [{} for _ in drawn]
    before = [nothing for _ in drawn]
    # All orders go on by one client at a time, so that many coalitions are known before they are computed.
    for length in range(1, len(clients) + 1):
        longer = [number for number in range(orders) if not (tolerance and abs(whole - before[number]) <= tolerance)]
        ahead([frozenset(drawn[number][:length]) for number in longer])
        for number in longer:
            after = utility(frozenset(drawn[number][:length]))
            marginals[number][drawn[number][length - 1]] = after - before[number]
            before[number] = after
    means = {client: mean_difference([own.get(client, 0.0) for own in marginals]) for client in clients}
    truncated = sum(len(clients) - len(own) for own in marginals)
    return Sampled({client: Value(own.mean, own.low, own.high) for client, own in means.items()}, truncated)
