from __future__ import annotations

import inspect
import sys
import tracemalloc
from dataclasses import dataclass
from math import comb
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim import schedule, seeds
from raysim.config import registry
from raysim.config.run_config import build
from raysim.config.sections import Schedule
from raysim.errors import ConfigError
from raysim.method import Traits
from raysim.methods.fedavg import FedAvg
from raysim.samplers._sampler import Known, Losses
from raysim.schedule import (
    check_joins,
    joined,
    participants,
    planned_intervals,
    random_communication,
    weighted_sample,
)


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


@pytest.mark.parametrize(("epochs", "interval"), [(4, 5), (5, 0), (0, 0), (3, -1)])
def test_impossible_intervals(epochs: int, interval: int) -> None:
    options = SimpleNamespace(epochs=epochs, rounds=0, local_epochs=interval, intervals="random")
    config: Any = SimpleNamespace(schedule=options, method=FedAvg(), seed=0)
    with pytest.raises(ConfigError, match="Allowed are"):
        planned_intervals(config)


@dataclass(frozen=True)
class Halves(FedAvg):
    """A method with a scheme of its own: one epoch a round, then two."""

    traits: ClassVar[Traits] = Traits(intervals=lambda epochs, interval, generator: [1, 2])


def test_the_schedule_goes_before_the_method() -> None:
    def intervals(method: str, scheme: str) -> list[int]:
        name = {"own": f"{__name__}:Halves"}.get(method, method)
        options = {"schedule.intervals": scheme, "schedule.epochs": 40, "schedule.local_epochs": 4}
        return planned_intervals(build([{"method.name": name} | options]))

    assert intervals("own", "method") == intervals("own", "random") == [1, 2]
    assert intervals("own", "fixed") == intervals("fedavg", "method") == intervals("fedrad", "fixed") == [4] * 10
    assert intervals("fedavg", "random") == intervals("fedrad", "method") != [4] * 10


def take(epochs_before: int, rate: float = 1.0, seed: int = 0) -> np.ndarray:
    return participants(joined(epochs_before, 10, (3, 2, 3, 2), 200), rate, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("epochs_before", "present"), [(0, 3), (199, 3), (200, 5), (399, 5), (400, 8), (600, 10), (9999, 10)]
)
def test_late_joiners(epochs_before: int, present: int) -> None:
    assert joined(epochs_before, 10, (3, 2, 3, 2), 200) == present
    assert take(epochs_before).tolist() == list(range(present))
    assert joined(epochs_before, 10, (), 0) == joined(epochs_before, 10, (10,), 0) == 10  # all start together
    check_joins((10,), 0, 10)


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


@pytest.mark.parametrize(
    ("joins", "join_every", "message"),
    [
        ((3, 2), 200, "3 \\+ 2 = 5, but the run has 10 clients"),
        ((10, 0), 200, "at least 1 client"),
        ((4, 6), 0, "join_every"),
    ],
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
        found = registry.resolve("method", name)
        source = inspect.getsource(sys.modules[found.__module__])
        traits = build([{"method.name": name}]).method.traits
        assert traits.uses_rounds == ("context.rounds" in source), name


def drawn(present: int, rate: float, rounds: int, seed: int = 0) -> list[list[int]]:
    """The Poisson cohorts of some rounds, from the streams that a run takes."""
    sampler = Schedule(sampling="poisson", sampling_rate=rate).sampler
    streams = (seeds.numpy_generator(seed, "participants", number) for number in range(1, rounds + 1))
    known = Known(1, range(present), 1, lambda clients: np.ones(len(clients), np.int64))
    return [sampler.cohort(known, stream).tolist() for stream in streams]


@settings(deadline=None, max_examples=60)
@given(present=st.integers(1, 300), rate=st.floats(1e-3, 1), seed=st.integers(0, 1000))
def test_a_poisson_cohort_is_a_set_of_present_clients(present: int, rate: float, seed: int) -> None:
    for cohort in drawn(present, rate, 3, seed):
        assert cohort == sorted(set(cohort)) and set(cohort) <= set(range(present))
    assert drawn(present, rate, 3, seed) == drawn(present, rate, 3, seed)
    assert drawn(present, 1.0, 1, seed) == [[*range(present)]]


@pytest.mark.parametrize(("present", "rate"), [(5, 0.1), (5, 0.6), (40, 0.05)])
def test_clients_join_independently(present: int, rate: float) -> None:
    """Shares of clients, of pairs, of sizes and of two rounds in a row lie within five standard errors of q's."""
    rounds = 20_000
    joined = np.zeros((rounds, present))
    for row, cohort in zip(joined, drawn(present, rate, rounds), strict=True):
        row[cohort] = 1

    def close(found: Any, expected: Any, variance: Any) -> bool:
        return bool((np.abs(found - expected) <= 5 * np.sqrt(variance / rounds)).all())

    assert close(joined.mean(axis=0), rate, rate * (1 - rate))
    pairs, square = (joined.T @ joined / rounds)[np.triu_indices(present, 1)], rate**2
    assert close(pairs, square, square * (1 - square))
    in_a_row = (joined[1:] * joined[:-1]).mean(axis=0)
    assert close(in_a_row, square, 3 * square * (1 - square))  # neighbors of neighbors depend on one another
    sizes = np.bincount(joined.sum(axis=1).astype(int), minlength=present + 1) / rounds
    binomial = np.array([comb(present, n) * rate**n * (1 - rate) ** (present - n) for n in range(present + 1)])
    assert close(sizes, binomial, binomial + 1 / rounds)
    assert sizes[0] > 0 or rate > 0.5  # a round without a client


def test_a_poisson_cohort_of_a_million_costs_no_more_than_itself() -> None:
    tracemalloc.start()
    (cohort,) = drawn(1_000_000, 1e-4, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 50 < len(cohort) < 150 and peak < 100_000


def test_a_weighted_sample_draws_one_after_another() -> None:
    """Shares of pairs lie within five standard errors of w_i w_j (1 / (m − w_i) + 1 / (m − w_j)) / m."""
    weights, draws, generator = np.array([1.0, 2.0, 3.0, 0.0]), 20_000, np.random.default_rng(0)
    found = np.array([weighted_sample(2, weights, generator) for _ in range(draws)])
    for i, j in ((0, 1), (0, 2), (1, 2)):
        w, v = weights[i], weights[j]
        expected = w * v * (1 / (6 - w) + 1 / (6 - v)) / 6
        share = np.mean((found == (i, j)).all(axis=1))
        assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / draws)
    assert weighted_sample(4, weights, generator).tolist() == [0, 1, 2, 3]
    assert 3 not in found  # of weight 0, it comes last


@settings(deadline=None, max_examples=40)
@given(
    name=st.sampled_from(("fixed", "by-size", "power-of-choice", "oort")),
    clients=st.lists(st.integers(0, 99), min_size=1, max_size=30, unique=True).map(sorted),
    share=st.floats(0.05, 1),
    seed=st.integers(0, 99),
    limit=st.integers(0, 2),
)
def test_cohorts_have_their_size_and_no_client_twice(
    name: str, clients: list[int], share: float, seed: int, limit: int
) -> None:
    """They are drawn of any clients, in rounds that learn from one another; equal streams draw the same again."""
    if name == "fixed":
        clients = [*range(len(clients))]  # it is drawn of those that have joined
    count = max(1, round(share * len(clients)))
    own: dict[str, Any] = {"most_rounds": limit} if name == "oort" else {}
    sampler = Schedule(sampling=name, sampling_rate=share, **own).sampler

    def losses(asked: Any) -> Losses:
        mean = np.cos(np.array(asked)) ** 2
        return Losses(mean, mean**2)

    def sizes(asked: Any) -> Any:
        return 1 + np.array(asked, np.int64) % 7

    def cohorts() -> list[list[int]]:
        memory, found = sampler.first_memory(), []
        for number in range(1, 7):
            known = Known(number, clients, count, sizes, losses, lambda asked: 1.0 + np.array(asked) % 3, memory)
            cohort = sampler.cohort(known, seeds.numpy_generator(seed, "participants", number)).tolist()
            memory = sampler.learn(known, cohort, losses(cohort)) if sampler.reports else memory
            found.append(cohort)
        return found

    for cohort in cohorts():
        assert len(cohort) == count and cohort == sorted(set(cohort)) and set(cohort) <= set(clients)
    assert cohorts() == cohorts()


@settings(deadline=None, max_examples=50)
@given(interval=st.integers(1, 12), blocks=st.integers(1, 60), rest=st.integers(0, 11), seed=st.integers(0, 2**32 - 1))
def test_random_communication_properties(interval: int, blocks: int, rest: int, seed: int) -> None:
    epochs = interval * blocks + rest % interval
    intervals = random_communication(epochs, interval, np.random.default_rng(seed))
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
    assert intervals == random_communication(epochs, interval, np.random.default_rng(seed))
    # The last, incomplete block holds no communication.
    whole = full * interval
    assert intervals == random_communication(whole, interval, np.random.default_rng(seed))
    assert epochs % interval <= epochs - sum(intervals) <= epochs % interval + interval - 1


def test_seeds_differ_and_interval_one_is_fixed() -> None:
    drawn = {tuple(random_communication(200, 5, np.random.default_rng(seed))) for seed in range(20)}
    assert len(drawn) == 20
    assert random_communication(6, 1, np.random.default_rng(0)) == [1] * 6


def test_communication_epochs_are_uniform_in_their_blocks() -> None:
    interval, blocks, seeds = 5, 8, 2000
    counts = np.zeros((blocks, interval))
    for seed in range(seeds):
        ends = np.cumsum(random_communication(interval * blocks, interval, np.random.default_rng(seed)))
        counts[np.arange(blocks), ends - 1 - np.arange(blocks) * interval] += 1
    assert np.all(counts[: blocks // 2, -1] == seeds)
    expected = seeds / interval
    chi_square = ((counts[blocks // 2 :] - expected) ** 2 / expected).sum(axis=1)
    assert np.all(chi_square < 18.47)  # the 0.999 quantile at 4 degrees of freedom
