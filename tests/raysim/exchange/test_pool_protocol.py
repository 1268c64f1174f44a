"""How clients are cut into remote calls."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.aggregators.means import PairwiseSum
from raysim.exchange.pool_protocol import cut, job_name


@pytest.mark.parametrize(
    ("count", "options", "sizes"),
    [
        (20, {}, [1] * 20),  # fewer than 16 a slot: one call each
        # An eighth of what is left in each of two calls (25, 19, 14, …), rounded down to three bits; at least 6.
        (200, {}, [24, 24, 16, 16, 14, 14, 10, 10, 8, 8, 7, 7, *[6] * 7]),
        (200, {"slots": 64}, [1] * 200),
        (11, {"size": 4}, [4, 4, 3]),
        (0, {}, []),
        # No shorter than what they cost.
        (200, {"seconds_each": 0.002}, [48, 48, 24, 24, 14, 14, 10, 10, 8]),  # 20 ms are ten client tasks
        # One client task is long enough.
        (200, {"seconds_each": 0.5}, [48, 48, 24, 24, 14, 14, 7, 7, 3, 3, 2, 2, 1, 1, 1, 1]),
        (20, {"seconds_each": 0.002}, [10, 10]),
        (20, {"seconds_each": 1e-6}, [10, 10]),  # no slot is left without a call
        (20, {"seconds_each": 0.5}, [5, 5, 2, 2, 1, 1, 1, 1, 1, 1]),
        (40, {"seconds_each": 0.015}, [10, 10, 5, 5, 2, 2, 2, 2, 2]),  # one is too short, two are not
        (1, {"seconds_each": 0.5}, [1]),
    ],
)
def test_calls_are_large_at_first_and_small_at_the_end(count: int, options: dict[str, Any], sizes: list[int]) -> None:
    blocks = cut(range(count), **{"slots": 2} | options)
    assert [len(block) for block in blocks] == sizes
    assert [client for block in blocks for client in block] == list(range(count))


def test_many_clients_make_few_calls() -> None:
    for count in (1_000, 100_000):
        assert len(cut(range(count), 2)) < 30


def test_a_call_returns_no_more_than_fits() -> None:
    assert {len(block) for block in cut(range(1000), 2, 0, 9 << 20)} == {3, 1}
    assert {len(block) for block in cut(range(1000), 2, 0, 100 << 20)} == {1}
    assert cut(range(1000), 2, 0, 1) == cut(range(1000), 2)


def test_clients_that_train_as_one_are_in_one_call() -> None:
    for count, slots, size in itertools.product((1, 5, 100, 1000), (1, 2, 64), (0, 1, 32)):
        blocks = cut(range(count), slots, size, 9 << 20, together=8)
        assert all(block[0] % 8 == 0 for block in blocks) and [*itertools.chain(*blocks)] == list(range(count))


def test_names_of_jobs_are_few_however_long_a_run_is() -> None:
    assert job_name("train", 1) == "train[round 1]"
    assert job_name("train", 99) == "train[round 99]"
    assert job_name("evaluate", 127) == "evaluate[rounds 120-129]"
    assert job_name("train", 12_345) == "train[rounds 12000-12999]"
    assert len({job_name("train", round) for round in range(1, 10_001)}) == 99 + 90 + 90 + 1


@settings(deadline=None, max_examples=100)
@given(
    count=st.integers(1, 700),
    slots=st.integers(1, 9),
    sigma=st.floats(0.0, 3.0),
    together=st.sampled_from([1, 4]),
    seed=st.integers(0, 2**32 - 1),
)
def test_calls_are_no_longer_than_their_share_and_sums_have_the_bits_of_the_whole(
    count: int, slots: int, sigma: float, together: int, seed: int
) -> None:
    costs = np.random.default_rng(seed).lognormal(0.0, sigma, count)
    blocks = cut(range(count), slots, together=together, costs=costs.tolist())
    assert [*itertools.chain(*blocks)] == list(range(count))
    for block in blocks:
        most = max(costs.sum() / (2 * slots), max(1, count // (16 * slots)) * costs.mean())
        assert len(block) <= together or costs[block].sum() <= most * (1 + 1e-6)
        assert block[0] % together == 0
    vectors = np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)
    each, whole = PairwiseSum(), PairwiseSum()
    for client in range(count):
        each.add(vectors[client].copy())
    for block in blocks:
        part = PairwiseSum(block[0])
        for client in block:
            part.add(vectors[client].copy())
        for node in part.nodes():
            whole.add(*node)
    assert np.array_equal(each.total(), whole.total())  # type: ignore[arg-type]


def test_calls_of_a_given_size_keep_it() -> None:
    assert {len(block) for block in cut(range(64), 2, 8, costs=[1000.0, *[1.0] * 63])} == {8}
    assert [len(block) for block in cut(range(64), 2, costs=[1.0] * 64)] == [len(block) for block in cut(range(64), 2)]
