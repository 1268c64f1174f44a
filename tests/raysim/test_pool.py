"""How clients are cut into remote calls."""

from __future__ import annotations

import itertools

import pytest

from raysim.pool import cut, job_name


@pytest.mark.parametrize(
    ("count", "slots", "size", "sizes"),
    [
        (20, 2, 0, [1] * 20),  # fewer than 16 a slot: one call each
        # A quarter of a slot's 100 clients at most (16), half of what a slot has left, a sixteenth at least (4).
        (200, 2, 0, [16] * 9 + [8] * 4 + [4] * 6),
        (200, 64, 0, [1] * 200),
        (11, 2, 4, [4, 4, 3]),
        (0, 2, 0, []),
    ],
)
def test_calls_are_large_at_first_and_small_at_the_end(count: int, slots: int, size: int, sizes: list[int]) -> None:
    blocks = cut(range(count), slots, size)
    assert [len(block) for block in blocks] == sizes
    assert [client for block in blocks for client in block] == list(range(count))


@pytest.mark.parametrize(
    ("count", "seconds", "sizes"),
    [
        (200, 0.002, [16] * 9 + [8] * 7),  # 20 ms are ten visits
        (200, 0.5, [16] * 9 + [8] * 4 + [4] * 3 + [2] * 3 + [1] * 6),  # one visit is long enough
        (20, 0.002, [8, 8, 4]),
        (20, 1e-6, [8, 8, 4]),  # no slot is left without a call
        (20, 0.5, [2] * 7 + [1] * 6),
        (1, 0.5, [1]),
    ],
)
def test_calls_are_no_shorter_than_what_they_cost(count: int, seconds: float, sizes: list[int]) -> None:
    blocks = cut(range(count), 2, seconds_each=seconds)
    assert [len(block) for block in blocks] == sizes
    assert [client for block in blocks for client in block] == list(range(count))


def test_many_clients_make_few_calls() -> None:
    for count in (1_000, 100_000):
        assert len(cut(range(count), 2)) < 30


def test_a_call_returns_no_more_than_fits() -> None:
    # Three would fit, but sizes are powers of two.
    assert {len(block) for block in cut(range(1000), 2, 0, 9 << 20)} == {2}
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
