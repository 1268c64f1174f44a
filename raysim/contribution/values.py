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


def leave_one_out(clients: Sequence[int], utility: Utility) -> dict[int, Value]:
    """v(N) − v(N∖i) of every client i."""
    everyone = frozenset(clients)
    whole = utility(everyone)
    return {client: Value(whole - utility(everyone - {client})) for client in clients}


def shapley(clients: Sequence[int], utility: Utility) -> dict[int, Value]:
    """The Shapley values of all clients N, from the utilities of all 2^n coalitions.

    φ_i = Σ_{S ⊆ N∖i} |S|! (n − |S| − 1)! / n! · (v(S ∪ i) − v(S)). Source: Shapley 1953, A value for n-person games.
    """
    count = len(clients)
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
    clients: Sequence[int], utility: Utility, orders: int, generator: np.random.Generator, tolerance: float = 0.0
) -> Sampled:
    """Shapley values as means of marginal contributions over random orders of the clients, each with its 95 % interval.

    Source: Ghorbani and Zou 2019, Data Shapley, Algorithm 1 (TMC-Shapley). Departure: nothing is truncated unless a
    tolerance is given, and a fixed number of orders is drawn, so that intervals of Student's t hold.

    Args:
        orders: how many are drawn, at least 2.
        tolerance: once a coalition's utility is as near to that of all clients, the rest of an order counts as zero.
    """
    marginals: dict[int, list[float]] = {client: [] for client in clients}
    nothing, whole, truncated = utility(frozenset()), utility(frozenset(clients)), 0
    for _ in range(orders):
        members, before = frozenset[int](), nothing
        for place in generator.permutation(len(clients)).tolist():
            client, members = clients[place], members | {clients[place]}
            if tolerance and abs(whole - before) <= tolerance:
                marginals[client].append(0.0)
                truncated += 1
                continue
            after = utility(members)
            marginals[client].append(after - before)
            before = after
    means = {client: mean_difference(own) for client, own in marginals.items()}
    return Sampled({client: Value(own.mean, own.low, own.high) for client, own in means.items()}, truncated)
