from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.aggregators.means import (
    BLOCK,
    PairwiseSum,
    mean_of_parameters,
    node_count,
    plain_mean,
    sample_weights,
    weighted_sum,
)


def test_weighted_sum_by_hand() -> None:
    vectors = [np.array(v, np.float32) for v in ([1, -2, 4], [-8, 4, 0], [2, 2, -2])]
    # 0.5·1 - 0.25·(-8) + 0.75·2 = 0.5 + 2 + 1.5;  0.5·(-2) - 0.25·4 + 0.75·2 = -1 - 1 + 1.5;  2 - 0 - 1.5
    total = weighted_sum(vectors, [0.5, -0.25, 0.75])
    assert total.dtype == np.float32
    assert total.tolist() == [4.0, -0.5, 0.5]


def test_plain_mean_by_hand() -> None:
    # (1 - 8 + 2 + 1) / 4, (-2 + 4 + 2 - 8) / 4
    mean = plain_mean([np.array(v, np.float32) for v in ([1, -2], [-8, 4], [2, 2], [1, -8])])
    assert mean.dtype == np.float32 and mean.tolist() == [-1.0, -1.0]
    with pytest.raises(ValueError, match="no vectors: at least one is needed"):
        plain_mean([])


def test_statistics_behind_the_parameters_are_averaged_by_samples() -> None:
    # (3 - 1) / 2, and 0.1 · 6 + 0.9 · 2
    vectors = [np.array(v, np.float32) for v in ([3, 6], [-1, 2])]
    assert mean_of_parameters(vectors, 1, [10, 90]).tolist() == pytest.approx([1.0, 2.4])
    assert mean_of_parameters(vectors, 2, [10, 90]).tolist() == plain_mean(vectors).tolist()


@settings(deadline=None, max_examples=20)
@given(
    size=st.sampled_from([1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 17]),
    count=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
)
def test_blocks_do_not_change_a_bit(size: int, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    vectors = [generator.standard_normal(size, np.float32) for _ in range(count)]
    factors = generator.standard_normal(count)
    plain = np.float32(factors[0]) * vectors[0]
    for vector, factor in zip(vectors[1:], factors[1:], strict=True):
        plain = plain + np.float32(factor) * vector
    assert weighted_sum(vectors, list(factors)).tobytes() == plain.tobytes()
    exact = np.tensordot(factors, np.stack(vectors).astype(np.float64), 1)
    np.testing.assert_allclose(plain, exact, atol=1e-5)


def test_inputs_are_only_read_and_nothing_of_size_n_d_is_made() -> None:
    vectors = [np.full(1_000_000, k, np.float32) for k in range(10)]
    for vector in vectors:
        vector.flags.writeable = False
    tracemalloc.start()
    total = weighted_sum(vectors, [0.5] * 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.all(total == 22.5)
    assert peak < 1.5 * total.nbytes


def pairwise(vectors: Sequence[np.ndarray | None]) -> np.ndarray | None:
    running = PairwiseSum()
    for vector in vectors:
        running.add(None if vector is None else vector.copy())
    return running.total()


def test_pairwise_sum_adds_along_the_tree() -> None:
    """In float32 the order shows: 2^24 + 1 is 2^24, so that a chain of sums would stay there."""
    big, one = np.array([2**24], np.float32), np.array([1], np.float32)
    assert pairwise([big, one, one, one]) == 2**24 + 2
    assert pairwise([one, one, big]) == 2**24 + 2
    assert pairwise([None, one, None, None, one]) == 2
    assert pairwise([None, None]) is None and pairwise([]) is None


@settings(deadline=None, max_examples=50)
@given(count=st.integers(1, 40), level=st.integers(0, 6), missing=st.sets(st.integers(0, 39)), seed=st.integers(0, 99))
def test_blocks_of_any_power_of_two_give_the_bits_of_the_whole(
    count: int, level: int, missing: set[int], seed: int
) -> None:
    generator = np.random.default_rng(seed)
    drawn = generator.standard_normal((count, 7)).astype(np.float32) * np.float32(10) ** generator.integers(-6, 6, 7)
    vectors = [None if k in missing else drawn[k].astype(np.float32) for k in range(count)]
    whole = pairwise(vectors)
    blocks = pairwise([pairwise(vectors[start : start + 2**level]) for start in range(0, count, 2**level)])
    if whole is None or blocks is None:
        assert whole is blocks and missing >= set(range(count))
        return
    assert whole.tobytes() == blocks.tobytes()
    present = np.stack([vector.astype(np.float64) for vector in vectors if vector is not None])
    # log2(n) roundings on the way from a leaf to the root, each of at most 2^-24 of what is added up there.
    assert np.all(np.abs(whole - present.sum(0)) <= 7 * 2.0**-24 * np.abs(present).sum(0))


def test_pairwise_sum_does_not_write_to_what_it_may_not() -> None:
    stored = np.ones(3, np.float32)
    stored.flags.writeable = False
    running = PairwiseSum()
    for _ in range(4):
        running.add(stored)
    assert running.total().tolist() == [4, 4, 4] and stored.tolist() == [1, 1, 1]  # type: ignore[union-attr]


def test_sample_weights_by_hand() -> None:
    weights = sample_weights([10, 0, 30])
    assert weights.dtype == np.float64
    assert weights.tolist() == [0.25, 0.0, 0.75]


@pytest.mark.parametrize("samples", [[0, 0], [3, -1]])
def test_sample_weights_refuse(samples: list[int]) -> None:
    with pytest.raises(ValueError, match="sample counts"):
        sample_weights(samples)


@pytest.mark.parametrize(
    ("vectors", "factors", "message"),
    [
        ([], [], "no vectors"),
        ([np.zeros(3, np.float32)], [1.0, 2.0], "1 vectors but 2 coefficients"),
        ([np.zeros(3, np.float32), np.zeros(1, np.float32)], [1.0, 2.0], r"vector 1 is float32 \(1,\)"),
        ([np.zeros(3)], [1.0], "vector 0 is float64"),
    ],
)
def test_weighted_sum_refuses(vectors: list[np.ndarray], factors: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weighted_sum(vectors, factors)


@given(first=st.integers(0, 300), positions=st.integers(0, 300))
def test_any_neighbors_are_few_nodes(first: int, positions: int) -> None:
    part = PairwiseSum(first)
    for _ in range(positions):
        part.add(None)
    nodes = [size for _, size in part.nodes()]
    assert sum(nodes) == positions and len(nodes) == node_count(first, positions) <= 2 * max(1, positions.bit_length())
    for size in nodes:
        assert size & (size - 1) == 0 and first % size == 0
        first += size
