from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.aggregators.clusters import largest_norm, least_cosine_across, mean_norm, minimum_cut, similarities


def gram_of(*updates: list[float]) -> np.ndarray:
    vectors = np.array(updates, np.float64)
    return np.asarray(vectors @ vectors.T)


PLANTED = gram_of([1.0, 0.1], [-0.9, 0.0], [1.1, -0.1], [-1.0, 0.05], [-0.2, 0.0])
"""Clients 0 and 2 go right, 1, 3 and 4 go left; their sum is (0, 0.05)."""


def test_norms_by_hand() -> None:
    gram = gram_of([3.0, 0.0], [0.0, -4.0])
    assert mean_norm(gram) == pytest.approx(2.5) and largest_norm(gram) == pytest.approx(4.0)
    assert mean_norm(PLANTED) == pytest.approx(0.05 / 5) and largest_norm(PLANTED) == pytest.approx(np.sqrt(1.22))
    assert mean_norm(np.array([[1.0, -1.0], [-1.0, 1.0 - 1e-12]])) == 0.0  # rounding below zero


def test_similarities_by_hand() -> None:
    found = similarities(gram_of([2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [1.0, 1.0], [0.0, 0.0]))
    half = 1 + np.sqrt(0.5)
    assert found[0] == pytest.approx([2, 1, 0, half, 1]) and found[1, 3] == pytest.approx(half)
    assert found[4].tolist() == [1, 1, 1, 1, 1]  # an update of zero goes in no direction


def test_a_planted_pair_of_clusters_is_found() -> None:
    assert minimum_cut(similarities(PLANTED)) == ([0, 2], [1, 3, 4])


@given(st.integers(2, 6), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_cut_is_the_least_of_all(count: int, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(0, 5, (count, count)).astype(float)
    weights = weights + weights.T

    def cut(side: tuple[int, ...]) -> float:
        rest = [vertex for vertex in range(count) if vertex not in side]
        return float(weights[np.ix_(list(side), rest)].sum())

    first, second = minimum_cut(weights)
    assert sorted(first + second) == list(range(count)) and first[0] == 0 and second
    least = min(cut(side) for size in range(1, count) for side in combinations(range(count), size))
    assert cut(tuple(first)) == least


def test_the_least_cosine_across_by_hand() -> None:
    # Angles 0°, 80°, 40° and 160°: 2 joins 0 (cos 40°, before 1 by number), then 1 joins them; 3 is 80° from 1.
    turns = np.deg2rad([0.0, 80.0, 40.0, 160.0])
    first, second, across = least_cosine_across(gram_of(*([np.cos(turn), np.sin(turn)] for turn in turns)))
    assert (first, second) == ([0, 1, 2], [3]) and across == pytest.approx(np.cos(np.deg2rad(80)))
    assert least_cosine_across(gram_of([1.0], [-2.0]))[:2] == ([0], [1])
    assert least_cosine_across(gram_of([1.0], [-2.0]))[2] == pytest.approx(-1.0)
    assert least_cosine_across(gram_of([1.0], [2.0], [3.0]))[2] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(20))
def test_no_cut_has_a_smaller_largest_cosine_across(seed: int) -> None:
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(int(generator.integers(2, 8)), 3))
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    everyone = set(range(len(units)))
    best = min(
        max(float(units[i] @ units[j]) for i in side for j in everyone - set(side))
        for size in range(1, len(units))
        for side in combinations(everyone, size)
    )
    first, second, across = least_cosine_across(gram_of(*vectors.tolist()))
    assert first[0] == 0 and set(first) | set(second) == everyone and not set(first) & set(second)
    assert across == pytest.approx(best)
    assert across == pytest.approx(max(float(units[i] @ units[j]) for i in first for j in second))
