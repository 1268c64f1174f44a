from __future__ import annotations

import inspect
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.config import registry
from raysim.config.run_config import build
from raysim.engine import schedule
from raysim.engine.schedule import check_joins, communication_intervals, joined, participants, planned_intervals
from raysim.errors import ConfigError


@settings(deadline=None, max_examples=50)
@given(interval=st.integers(1, 12), blocks=st.integers(1, 60), rest=st.integers(0, 11), seed=st.integers(0, 2**32 - 1))
def test_random_communication_properties(interval: int, blocks: int, rest: int, seed: int) -> None:
    epochs = interval * blocks + rest % interval
    intervals = communication_intervals(epochs, interval, True, np.random.default_rng(seed))
    half, full = epochs // (2 * interval), epochs // interval
    assert len(intervals) == full
    assert all(type(value) is int for value in intervals)
    assert intervals[:half] == [interval] * half
    assert 1 <= intervals[half] <= interval
    assert all(1 <= value <= 2 * interval - 1 for value in intervals[half:])
    assert sum(intervals) <= full * interval
    communications = np.cumsum(intervals)
    for block in range(half, full):
        assert block * interval < communications[block] <= (block + 1) * interval
    assert intervals == communication_intervals(epochs, interval, True, np.random.default_rng(seed))
    # The last, incomplete block holds no communication, in either scheme.
    whole = full * interval
    assert intervals == communication_intervals(whole, interval, True, np.random.default_rng(seed))
    assert communication_intervals(epochs, interval, False, np.random.default_rng(seed)) == [interval] * full
    assert epochs % interval <= epochs - sum(intervals) <= epochs % interval + interval - 1


@settings(deadline=None, max_examples=30)
@given(epochs=st.integers(1, 200), interval=st.integers(1, 20), seed=st.integers(0, 100), method=st.booleans())
def test_a_run_of_any_number_of_epochs_has_the_rounds_that_these_hold(
    epochs: int, interval: int, seed: int, method: bool
) -> None:
    name = "fedrad" if method else "fedavg"
    options = {"method.name": name, "schedule.local_epochs": interval, "schedule.epochs": epochs, "seed": seed}
    if epochs < interval:
        with pytest.raises(ConfigError, match=r"schedule\.epochs: \d+ local epochs in all"):
            build([options])
        return
    config = build([options])
    intervals = planned_intervals(config)
    assert config.schedule.rounds == len(intervals) == epochs // interval
    rounds = {"method.name": name, "schedule.local_epochs": interval, "schedule.rounds": len(intervals), "seed": seed}
    assert intervals == planned_intervals(build([rounds]))


def test_seeds_differ_and_interval_one_is_fixed() -> None:
    drawn = {tuple(communication_intervals(200, 5, True, np.random.default_rng(seed))) for seed in range(20)}
    assert len(drawn) == 20
    assert communication_intervals(6, 1, True, np.random.default_rng(0)) == [1] * 6


def test_communication_epochs_are_uniform_in_their_blocks() -> None:
    interval, blocks, seeds = 5, 8, 2000
    counts = np.zeros((blocks, interval))
    for seed in range(seeds):
        ends = np.cumsum(communication_intervals(interval * blocks, interval, True, np.random.default_rng(seed)))
        counts[np.arange(blocks), ends - 1 - np.arange(blocks) * interval] += 1
    assert np.all(counts[: blocks // 2, -1] == seeds)
    expected = seeds / interval
    chi_square = ((counts[blocks // 2 :] - expected) ** 2 / expected).sum(axis=1)
    assert np.all(chi_square < 18.47)  # the 0.999 quantile at 4 degrees of freedom


def test_fixed_communication_draws_nothing() -> None:
    generator = np.random.default_rng(0)
    assert communication_intervals(17, 5, False, generator) == [5, 5, 5]
    assert generator.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize(("epochs", "interval"), [(4, 5), (5, 0), (0, 0), (3, -1)])
def test_impossible_intervals(epochs: int, interval: int) -> None:
    with pytest.raises(ConfigError, match="Allowed are"):
        communication_intervals(epochs, interval, True, np.random.default_rng(0))


def take(epochs_before: int, rate: float = 1.0, joins: tuple[int, ...] = (3, 2, 3, 2), seed: int = 0) -> np.ndarray:
    return participants(joined(epochs_before, 10, joins, 200), rate, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("epochs_before", "present"), [(0, 3), (199, 3), (200, 5), (399, 5), (400, 8), (600, 10), (9999, 10)]
)
def test_late_joiners(epochs_before: int, present: int) -> None:
    assert joined(epochs_before, 10, (3, 2, 3, 2), 200) == present
    assert take(epochs_before).tolist() == list(range(present))


def test_without_groups_all_start_together() -> None:
    chosen = take(0, joins=())
    assert chosen.dtype == np.int64
    assert chosen.tolist() == list(range(10))


@settings(deadline=None, max_examples=50)
@given(clients=st.integers(1, 30_000), rate=st.floats(0.001, 1.0), seed=st.integers(0, 2**32 - 1))
def test_samples(clients: int, rate: float, seed: int) -> None:
    chosen = participants(clients, rate, np.random.default_rng(seed))
    assert chosen.dtype == np.int64
    assert len(chosen) == max(1, round(rate * clients))
    assert np.all(np.diff(chosen) > 0)
    assert chosen[0] >= 0 and chosen[-1] < clients
    assert np.array_equal(chosen, participants(clients, rate, np.random.default_rng(seed)))


def test_sampling_is_uniform_over_the_joined() -> None:
    rounds = 2000
    counts = np.zeros(10)
    for seed in range(rounds):
        counts[take(400, rate=0.5, seed=seed)] += 1  # 4 of the 8 that have joined
    assert counts[8:].tolist() == [0, 0]
    assert np.all(np.abs(counts[:8] - rounds / 2) < 4 * np.sqrt(rounds / 4))


def test_a_million_clients_cost_nothing() -> None:
    generator = np.random.default_rng(0)
    tracemalloc.start()
    chosen = participants(1_000_000, 1e-4, generator)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(chosen) == 100
    assert peak < 100_000


def test_accepted_joins() -> None:
    check_joins((3, 2, 3, 2), 200, 10)
    check_joins((), 0, 10)


@pytest.mark.parametrize(
    ("joins", "join_every", "message"),
    [((3, 2), 200, "3 \\+ 2 = 5, but there are 10"), ((10, 0), 200, "at least 1 client"), ((4, 6), 0, "join_every")],
)
def test_refused_joins(joins: tuple[int, ...], join_every: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_joins(joins, join_every, 10)


def test_common_rounds() -> None:
    def common(rounds: int, other: int, **options: object) -> int:
        config = build([{"method.name": "fedavg", "schedule.rounds": rounds} | options])
        return schedule.common_rounds(config, other)

    assert common(6, 6) == common(6, 10) == common(10, 6) == 6
    every_4: dict[str, object] = {"evaluation.every": 4}
    assert common(6, 10, **every_4) == 5  # the shorter run's last round is evaluated
    assert common(8, 10, **every_4) == 8
    random: dict[str, object] = {"schedule.intervals": "random", "schedule.local_epochs": 8}
    assert 3 <= common(6, 10, **random) <= 5
    assert common(6, 6, **random) == 6
    assert common(6, 10, **{"method.name": "apple"}) == 0  # its pull decays over the whole run


def test_a_method_that_reads_the_number_of_rounds_says_so() -> None:
    """In the source of each: context.rounds, or the context handed on."""
    for name in registry.known("method"):
        found = registry.method_class(name)
        source = inspect.getsource(sys.modules[found.__module__])
        traits = build([{"method.name": name}]).method.traits
        assert traits.uses_rounds == ("context.rounds" in source), name
