"""Clustered federated learning: when a cluster splits, worked out by hand; what a split does is in test_gcfl.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raysim.methods._splitting_clusters import Server
from raysim.methods.clustered import Clustered
from tests.raysim.methods.by_hand import context, updates

START = np.array([10, 20, 30], np.float32)


def step(method: Clustered, changes: list[list[float]], samples: list[int], round: int = 21) -> Server:
    return method.aggregate(Server(START, {}, {}), updates(changes, samples), context(round=round))


def test_a_cluster_whose_weighted_mean_is_zero_splits() -> None:
    # Two parameters and a buffer. Samples 1, 3, 1, 1: the mean is ((3·1 - 3)/6, (2 - 2)/6) = 0; equal ones: (-1/2, 0).
    changes = [[0.0, 2.0, 4.0], [1.0, 0.0, 0.0], [-3.0, 0.0, 8.0], [0.0, -2.0, 0.0]]
    method = Clustered(small_mean=0.25, large_update=2.5)
    assert step(method, changes, [1, 1, 1, 1]).split_off == {}
    assert step(method, changes, [1, 3, 1, 1], round=20).split_off == {}
    # Cosines are 0 or -1: 0 and 1 join, then 2 joins them, by number, and client 3 is alone.
    server = step(method, changes, [1, 3, 1, 1])
    assert server.cluster_of == {3: 1} and server.split_off[1].tolist() == [10, 18, 30]
    np.testing.assert_allclose(server.parameters, [10, 20 + 2 / 5, 30 + 12 / 5], rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "splits"),
    [
        (Clustered(small_mean=3.1, large_update=1.5), True),
        (Clustered(small_mean=2.9, large_update=1.5), False),  # the mean is (3, 0)
        (Clustered(small_mean=3.1, large_update=5.1), False),  # the longest are 5
        (Clustered(small_mean=3.1, large_update=1.5, gamma=0.8), True),  # -7/25 < √0.1
        (Clustered(small_mean=3.1, large_update=1.5, gamma=1.0), True),  # -7/25 < 0
    ],
)
def test_the_conditions_of_a_split(method: Clustered, splits: bool) -> None:
    # (3, 4) twice and (3, -4) twice: cos = 1 within and (9 - 16)/25 = -7/25 across.
    server = step(method, [[3, 4, 0], [3, -4, 0], [3, 4, 0], [3, -4, 0]], [1, 1, 1, 1])
    assert server.cluster_of == ({1: 1, 3: 1} if splits else {})


def test_directions_that_are_too_near_are_not_cut() -> None:
    # cos((4, 3), (4, -3)) = 7/25 and √((1 - γ)/2) is √0.1 = 0.316 for γ = 0.8, √0.05 = 0.224 for γ = 0.9.
    changes = [[4.0, 3.0, 0.0], [4.0, -3.0, 0.0], [4.0, 3.0, 0.0]]
    assert step(Clustered(small_mean=9, large_update=1, gamma=0.8), changes, [1, 2, 5]).cluster_of == {1: 1}
    assert step(Clustered(small_mean=9, large_update=1, gamma=0.9), changes, [1, 2, 5]).cluster_of == {}


def test_lengths_are_those_of_updates_before_a_weight_by_staleness() -> None:
    # The longest is 5, of which a step four versions on takes a half.
    changes = np.array([[3, 4, 0], [3, -4, 0], [3, 4, 0], [3, -4, 0]], np.float32)
    stale, method = updates(changes / 2, [1, 1, 1, 1]), Clustered(small_mean=3.1, large_update=4.9)
    told = context(round=21)
    assert method.aggregate(Server(START, {}, {}), stale, told).cluster_of == {}
    server = method.aggregate(Server(START, {}, {}), replace(stale, unweighted=tuple(changes)), told)
    assert server.cluster_of == {1: 1, 3: 1} and server.parameters.tolist() == [11.5, 22, 30]
