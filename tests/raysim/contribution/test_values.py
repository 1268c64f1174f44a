"""Shapley values and leave-one-out of utilities that are known."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.typing import NDArray

from raysim.contribution.values import leave_one_out, sampled_shapley, shapley

HOSPITALS = Path(__file__).parents[3] / "docs/results/contribution-heart-disease.csv"


def by_all_orders(clients: list[int], utilities: Mapping[frozenset[int], float]) -> dict[int, float]:
    """The definition: the mean over all orders of what a client adds to those before it."""
    orders = [*itertools.permutations(clients)]
    found = dict.fromkeys(clients, 0.0)
    for order in orders:
        for place, client in enumerate(order):
            before = frozenset(order[:place])
            found[client] += (utilities[before | {client}] - utilities[before]) / len(orders)
    return found


@pytest.fixture
def utilities() -> dict[frozenset[int], float]:
    """The utilities of the four hospitals' 15 coalitions, and of none."""
    rows = pandas.read_csv(HOSPITALS, dtype={"clients": str}, keep_default_na=False)
    return {
        frozenset(map(int, clients.split())): utility
        for clients, utility in zip(rows["clients"], rows["utility"], strict=True)
    }


def test_the_four_hospitals_by_the_definition(utilities: dict[frozenset[int], float]) -> None:
    clients = [0, 1, 2, 3]
    assert len(utilities) == 16
    found = shapley(clients, utilities.__getitem__)
    expected = by_all_orders(clients, utilities)
    assert {client: value.value for client, value in found.items()} == pytest.approx(expected)
    everyone = frozenset(clients)
    assert sum(value.value for value in found.values()) == pytest.approx(utilities[everyone] - utilities[frozenset()])
    left = leave_one_out(clients, utilities.__getitem__)
    assert [left[client].value for client in clients] == [
        utilities[everyone] - utilities[everyone - {client}] for client in clients
    ]


def test_random_orders_add_up_too_and_their_intervals_hold_the_exact_values(
    utilities: dict[frozenset[int], float],
) -> None:
    clients, exact = [0, 1, 2, 3], shapley([0, 1, 2, 3], utilities.__getitem__)
    found = sampled_shapley(clients, utilities.__getitem__, 50, np.random.default_rng(0))
    total = utilities[frozenset(clients)] - utilities[frozenset()]
    assert sum(value.value for value in found.values.values()) == pytest.approx(total) and found.truncated == 0
    for client in clients:
        value = found.values[client]
        assert value.low is not None and value.high is not None
        assert value.low <= exact[client].value <= value.high
    cut = sampled_shapley(clients, utilities.__getitem__, 50, np.random.default_rng(0), 0.02)
    assert 0 < cut.truncated < 200


class OneOrder:
    """In the place of a generator: the clients in their order."""

    def permutation(self, count: int) -> NDArray[np.int64]:
        return np.arange(count)


def test_the_rest_of_an_order_counts_as_zero_once_it_is_near_from_below_or_above() -> None:
    utilities = {0: 0.0, 1: 1.5, 2: 0.95, 3: 1.0}  # by the number of clients: 1.5 lies above all clients' 1.0
    asked: list[int] = []

    def utility(coalition: frozenset[int]) -> float:
        asked.append(len(coalition))
        return utilities[len(coalition)]

    order: Any = OneOrder()
    found = sampled_shapley([0, 1, 2], utility, 2, order, 0.1)
    assert [found.values[client].value for client in (0, 1, 2)] == pytest.approx([1.5, -0.55, 0.0])
    assert found.truncated == 2 and asked == [0, 3, 1, 1, 2, 2]


def test_clients_that_add_the_same_have_the_same_value() -> None:
    worth = {0: 1.0, 1: 1.0, 2: 3.0, 3: 0.0}

    def utility(coalition: frozenset[int]) -> float:
        return sum(worth[client] for client in coalition) ** 2

    found = shapley([0, 1, 2, 3], utility)
    assert found[0].value == pytest.approx(found[1].value) and found[0].value < found[2].value
    assert found[3].value == pytest.approx(0.0)
