"""Robust rules against ByzFL's results, numbers worked out by hand, and the properties that make them robust."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from raysim.aggregators import robust
from raysim.aggregators.gram import gram_matrix
from raysim.aggregators.means import weighted_sum
from raysim.aggregators.sorted_coordinates import BLOCK, comparisons, coordinate_median, trimmed_mean
from tests.aggregators import byzfl_results

Vector = NDArray[np.float32]
Rule = Callable[[Sequence[Vector]], Vector]
BYZANTINE = 2


def combined(coefficients: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Rule:
    return lambda vectors: weighted_sum(vectors, coefficients(gram_matrix(vectors)).tolist())


RULES: dict[str, Rule] = {
    "median": coordinate_median,
    "trimmed-mean": lambda vectors: trimmed_mean(vectors, BYZANTINE),
    "krum": combined(lambda gram: robust.krum(gram, BYZANTINE)),
    "multi-krum": combined(lambda gram: robust.multi_krum(gram, BYZANTINE)),
    "geometric-median": combined(lambda gram: robust.geometric_median(gram, 1e-3, 100)),
}


def random_vectors(count: int, size: int, seed: int = 0) -> list[Vector]:
    return list(np.random.default_rng(seed).standard_normal((count, size), dtype=np.float32))


def test_hand() -> None:
    """Five vectors of two numbers, one of them far off."""
    vectors = [np.array(pair, np.float32) for pair in ((0, 0), (1, 0), (0, 1), (1, 3), (100, -100))]
    gram = gram_matrix(vectors)
    assert coordinate_median(vectors).tolist() == [1, 0]
    assert trimmed_mean(vectors, 1).tolist() == pytest.approx([2 / 3, 1 / 3])
    # Squared distances from (0, 0) to the n − f − 1 = 3 nearest: 1, 1, 10; from (1, 0): 1, 2, 9; from (0, 1): 1, 2, 5;
    # from (1, 3): 5, 9, 10; from the last many thousands.
    assert robust.krum_scores(gram, 1)[:4].tolist() == pytest.approx([12 / 3, 12 / 3, 8 / 3, 24 / 3])
    assert robust.krum(gram, 1).tolist() == [0, 0, 1, 0, 0]
    assert robust.multi_krum(gram, 1).tolist() == [0.25, 0.25, 0.25, 0.25, 0]
    assert robust.nearest_neighbor_mixing(gram, 2)[3].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0])
    # From 0 with radius 1: (0, 0), (1, 0) and (0, 1) stay; (1, 3) is divided by √10, the last by √2 · 100.
    assert (5 * robust.centered_clipping(gram, 1.0)).tolist() == pytest.approx([1, 1, 1, 10**-0.5, 0.005 * 2**0.5])
    assert np.diag(robust.norm_bound(gram, 1.0)).tolist() == pytest.approx([1, 1, 1, 10**-0.5, 0.005 * 2**0.5])


@pytest.mark.parametrize("count", [1, 2, 3, 10, 17, 50])
def test_median_is_numpys(count: int) -> None:
    """For any number of vectors, over more than a block of coordinates, with equal values among them."""
    vectors = [vector.round(1) for vector in random_vectors(count, BLOCK + 5)]
    np.testing.assert_allclose(coordinate_median(vectors), np.median(vectors, axis=0), atol=1e-6)
    cut = (count - 1) // 3
    expected = np.sort(vectors, axis=0)[cut : count - cut].mean(axis=0)
    np.testing.assert_allclose(trimmed_mean(vectors, cut), expected, atol=1e-6)


@pytest.mark.parametrize(("count", "cut"), [(1, 0), (2, 0), (6, 0), (7, 3), (9, 2), (10, 4), (10, 1)])
def test_comparisons_find_the_middle_of_every_sequence_of_zeros_and_ones(count: int, cut: int) -> None:
    """By the 0-1 principle they then do so for anything; a value that is not kept is never read again."""
    columns = np.array(list(itertools.product((0, 1), repeat=count)), np.float32).T
    rows = columns.copy()
    for low, high, smaller, larger in comparisons(count, cut):
        both = np.minimum(rows[low], rows[high]), np.maximum(rows[low], rows[high])
        rows[low], rows[high] = both[0] if smaller else np.nan, both[1] if larger else np.nan
    middle = slice(cut, count - cut)
    assert np.array_equal(np.sort(rows[middle], axis=0), np.sort(columns, axis=0)[middle])


def test_order_leaves_no_trace_in_a_trimmed_mean() -> None:
    vectors = random_vectors(9, BLOCK + 5)
    for order in (range(8, -1, -1), np.random.default_rng(1).permutation(9)):
        assert np.array_equal(trimmed_mean([vectors[k] for k in order], 2), trimmed_mean(vectors, 2))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["median", "trimmed-mean"])
def test_vectors_that_are_not_finite_are_left_out(name: str, bad: float) -> None:
    honest = random_vectors(7, 50)
    attack = np.full(50, bad, np.float32)
    result = RULES[name]([attack, *honest, attack])
    assert (np.min(honest, axis=0) <= result).all() and (result <= np.max(honest, axis=0)).all()


@pytest.mark.parametrize("name", RULES)
def test_permutation_and_translation(name: str) -> None:
    vectors = random_vectors(9, 300)
    result = RULES[name](vectors)
    order = np.random.default_rng(1).permutation(9)
    np.testing.assert_allclose(RULES[name]([vectors[k] for k in order]), result, atol=2e-6)
    moved = RULES[name]([vector + np.float32(3) for vector in vectors])
    np.testing.assert_allclose(moved, result + 3, atol=2e-4)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("size", [1e3, 1e15, 3e37])
def test_breakdown(name: str, size: float) -> None:
    """f vectors of any length, be they all alike, do not move the result out of reach of the honest ones."""
    honest = random_vectors(7, 300)
    attack = np.full(300, size, np.float32)
    moved = RULES[name]([*honest, attack, attack]) - np.mean(honest, axis=0)
    longest = max(float(np.linalg.norm(vector)) for vector in honest)
    assert float(np.linalg.norm(moved)) <= 2 * longest


def test_too_many_byzantine() -> None:
    vectors = random_vectors(4, 3)
    with pytest.raises(ValueError, match="at most 1 can be outvoted"):
        robust.krum(gram_matrix(vectors), 2)
    with pytest.raises(ValueError, match="leave none; at most 1"):
        trimmed_mean(vectors, 2)


def test_buckets() -> None:
    """Every vector is in one bucket, and a bucket's weights are those of a mean."""
    mixing = robust.bucketing(7, 3, np.random.default_rng(0))
    assert sorted((mixing > 0).sum(axis=1).tolist()) == [1, 3, 3]
    assert (mixing > 0).sum(axis=0).tolist() == [1] * 7
    assert mixing.sum(axis=1).tolist() == pytest.approx([1, 1, 1])


def test_mixed_before_a_rule() -> None:
    """A rule on mixed vectors, made in the space of the clients, is the rule on vectors that are mixed first."""
    vectors = random_vectors(9, BLOCK + 5)
    gram = gram_matrix(vectors)
    mixing = robust.nearest_neighbor_mixing(gram, BYZANTINE)
    mixed = list((mixing @ np.array(vectors)).astype(np.float32))
    np.testing.assert_allclose(coordinate_median(vectors, mixing), coordinate_median(mixed), atol=1e-6)
    own = robust.geometric_median(robust.mixed_gram(gram, mixing)) @ mixing
    np.testing.assert_allclose(weighted_sum(vectors, own.tolist()), combined(robust.geometric_median)(mixed), atol=1e-6)


def test_byzfl() -> None:
    """The results of ByzFL 0.0.11 on the same vectors, which byzfl_results.py wrote."""
    vectors, f = byzfl_results.vectors(), byzfl_results.BYZANTINE
    gram, stack, radius = gram_matrix(vectors), np.array(vectors), byzfl_results.RADIUS
    mixing = robust.nearest_neighbor_mixing(gram, f)
    own: dict[str, NDArray[Any]] = {
        "median": coordinate_median(vectors),
        "trimmed mean": trimmed_mean(vectors, f),
        "Krum": robust.krum(gram, f) @ stack,
        "multi-Krum": robust.multi_krum(gram, f) @ stack,
        "geometric median": robust.geometric_median(gram, 0.1, 3) @ stack,
        "centered clipping": robust.centered_clipping(gram, radius, 3) @ stack,
        "mixing": mixing @ stack,
        "mixing, then median": coordinate_median(vectors, mixing),
        "mixing, then geometric median": robust.geometric_median(robust.mixed_gram(gram, mixing), 0.1, 3)
        @ mixing
        @ stack,
        "norm bound": robust.norm_bound(gram, radius) @ stack,
    }
    stored = json.loads(byzfl_results.FILE.read_text())
    assert own.keys() == stored.keys()
    for name, result in own.items():
        np.testing.assert_allclose(result, np.array(stored[name]), atol=2e-6, err_msg=name)
