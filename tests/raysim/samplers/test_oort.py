"""Oort's selector against its algorithm, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from raysim.config.sections import Schedule
from raysim.samplers._sampler import Known, Losses

SECONDS = np.array([1.0, 4.0, 2.0, 2.0, 8.0, 8.0])
MEMORY: dict[str, Any] = {
    "clients": np.array([0, 1, 2, 3]),
    "utility": np.array([1.0, 2.0, 3.0, 11.0]),
    "last": np.array([1, 2, 3, 4]),
    "times": np.array([1, 1, 1, 1]),
    "rounds": np.array([50.0, 50.0, 10.0]),
    "steps": 0,
}


def sampler(**options: Any) -> Any:
    return Schedule(sampling="oort", sampling_rate=0.5, **options).sampler


def known(number: int = 5, count: int = 4, memory: Any = MEMORY, seconds: Any = SECONDS) -> Known:
    speeds = None if seconds is None else lambda clients: seconds[[*clients]]
    return Known(number, range(6), count, lambda clients: 10 * np.array([*clients]), None, speeds, memory)


def test_scores_by_hand() -> None:
    """Capped at 9.8, the 95 % quantile, and brought to [0, 1]; T = 2 s is the 0.3 quantile, and client 1 takes 4."""
    plain = np.array([0, 1 / 8.8, 2 / 8.8, 1]) + np.sqrt(0.1 * np.log(5) / np.array([1, 2, 3, 4]))
    assert sampler().scores(known(seconds=None)) == pytest.approx(plain)
    assert sampler().scores(known()) == pytest.approx(plain * [1, 0.25, 1, 1])
    assert sampler().scores(known(memory=MEMORY | {"steps": 5})) == pytest.approx(plain * [1, 0.765625, 1, 1])
    assert sampler(speed_penalty=0.0).scores(known()) == pytest.approx(plain)


def test_half_a_cohort_is_exploited_and_half_explored() -> None:
    """Scores 0.40, 0.10, 0.46, 1.20: the second best is the cut-off, and 0.40 < 0.95 · 0.46 is not admitted."""
    half = sampler(explore=0.5, explore_least=0.5)
    for seed in range(20):
        assert half.cohort(known(), np.random.default_rng(seed)).tolist() == [2, 3, 4, 5]
    tired = MEMORY | {"times": np.array([1, 1, 3, 3])}
    assert sampler(explore=0.5, explore_least=0.5, most_rounds=3).cohort(
        known(memory=tired), np.random.default_rng(0)
    ).tolist() == [0, 1, 4, 5]


def test_a_fifth_of_five_is_one() -> None:
    """1 − 0.8 is a little less than 0.2. Of 20 clients four are explored, and client 3 is by far the best of them."""
    memory = MEMORY | {"utility": np.array([1.0, 1.0, 1.0, 1000.0])}
    rare = sampler(explore=0.8, explore_least=0.8)
    for seed in range(20):
        there = Known(5, range(20), 5, lambda clients: np.full(len(clients), 10), None, None, memory)
        found = rare.cohort(there, np.random.default_rng(seed)).tolist()
        assert found[0] == 3 and len(found) == 5 and min(found[1:]) > 3


def test_explored_clients_take_the_places_of_unexplored_ones_that_are_missing() -> None:
    """All six were explored, and two of them promise most by far: these are in every cohort, whatever the share."""
    every = {"clients": np.arange(6), "last": np.ones(6, np.int64), "times": np.ones(6, np.int64)}
    memory = MEMORY | every | {"utility": np.array([1.0, 50.0, 1.0, 1.0, 50.0, 1.0])}
    curious = sampler(explore=1.0, explore_least=1.0)
    for seed in range(20):
        found = curious.cohort(known(1, 2, memory, None), np.random.default_rng(seed)).tolist()
        assert found == [1, 4]


def test_admitted_clients_are_drawn_in_proportion_to_their_scores() -> None:
    """Two of three admitted clients are drawn; the first has 98 % of all scores."""
    scores, draws = np.array([98.0, 1.0, 1.0]), [np.random.default_rng(seed) for seed in range(200)]
    found = [sampler()._by_score(scores, 2, generator).tolist() for generator in draws]
    assert sum(0 in chosen for chosen in found) > 190


def test_the_share_of_exploration_falls_to_its_least() -> None:
    assert [sampler().exploration(number) for number in (1, 2, 100)] == pytest.approx([0.9, 0.882, 0.2])


def test_faster_clients_are_explored_more_often() -> None:
    unexplored = sampler().first_memory()
    drawn = [sampler().cohort(known(1, 1, unexplored), np.random.default_rng(seed))[0] for seed in range(500)]
    speeds = 1 / SECONDS
    assert np.bincount(drawn) / 500 == pytest.approx(speeds / speeds.sum(), abs=0.1)


def test_what_is_learned_of_a_round() -> None:
    """U = m sqrt(mean of squares): 30 · 2 and 40 · 3; 50 + 50 > 10 + 180 is false, but with 10 + 80 it is true."""
    paced = sampler(pacer_window=2)
    after = paced.learn(known(6), [3, 4], Losses(np.ones(2), np.array([4.0, 9.0])))
    assert after["clients"].tolist() == [0, 1, 2, 3, 4]
    assert after["utility"].tolist() == [1, 2, 3, 60, 120]
    assert after["last"].tolist() == [1, 2, 3, 6, 6] and after["times"].tolist() == [1, 1, 1, 2, 1]
    assert after["rounds"].tolist() == [50, 50, 10, 180] and after["steps"] == 0
    less = Losses(np.ones(1), np.array([4.0]))
    assert paced.learn(known(6), [4], less)["steps"] == 1
    none = Losses(np.full(1, np.nan), np.full(1, np.nan))
    assert paced.learn(known(6), [4], none)["utility"].tolist() == [1, 2, 3, 11, 0]  # it has no samples
    assert paced.learn(known(7), [4], less)["steps"] == 0  # every second round alone
    assert MEMORY["utility"].tolist() == [1, 2, 3, 11]
