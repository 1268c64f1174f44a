"""The order of events in virtual time: by hand for three clients in every mode, and what holds for any devices."""

from __future__ import annotations

import itertools
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.config.sections import Schedule
from raysim.config.timing import Timing
from raysim.errors import ConfigError
from raysim.virtual_time.devices.availability import Absence, Availability, absent, from_windows
from raysim.virtual_time.devices.profiles import Profiles
from raysim.virtual_time.fleet import ClockSettings, Fleet
from raysim.virtual_time.timeline import ServerStep, plan

FREE = 1e30
"""Bytes a second of a network that takes no time."""


def fleet(seconds: list[float], availability: Availability | None = None, drop_probability: float = 0.0) -> Fleet:
    """Clients of one sample, whose tasks take these seconds an epoch."""
    count = len(seconds)
    profiles = Profiles(
        np.array(seconds, np.float64),
        np.full(count, FREE),
        np.full(count, FREE),
        np.zeros(count),
        np.full(count, drop_probability),
        np.ones(count),
        availability,
    )
    return Fleet(profiles, np.ones(count, np.int64), 0, 0)


def steps(clients: Fleet, rounds: int, schedule: Schedule | None = None, **options: Any) -> list[ServerStep]:
    return plan(ClockSettings(0, Timing(**options), schedule or Schedule(), [1] * rounds), clients)[0]


def told(step: ServerStep) -> tuple[float, dict[int, int]]:
    """When the step is, and the staleness of each arrival."""
    return step.time, dict(zip((flight.client for flight in step.arrivals), step.staleness(), strict=True))


def seconds_of(mode: str) -> list[float]:
    """Seconds of three clients' tasks: without rounds no two end at once, as chance decides among those."""
    return [1.0, 2.25, 4.125] if mode in ("async", "buffered") else [1.0, 2.0, 4.0]


BY_HAND: dict[str, tuple[dict[str, Any], list[tuple[float, dict[int, int]]]]] = {
    "sync": ({}, [(4.0, {0: 0, 1: 0, 2: 0}), (8.0, {0: 0, 1: 0, 2: 0})]),
    "deadline": ({"deadline": 3.0}, [(3.0, {0: 0, 1: 0}), (6.0, {0: 0, 1: 0})]),
    # Client 2 is under way until 4; the second round is over at 5, when no one is under way any more.
    "deadline, carry": ({"deadline": 3.0, "late": "carry"}, [(3.0, {0: 0, 1: 0}), (5.0, {0: 0, 1: 0, 2: 1})]),
    "quorum": ({"quorum": 0.5}, [(2.0, {0: 0, 1: 0}), (4.0, {0: 0, 1: 0})]),
    "async": (
        {},
        [(1.0, {0: 0}), (2.0, {0: 0}), (2.25, {1: 2}), (3.0, {0: 1}), (4.0, {0: 0}), (4.125, {2: 5}), (4.5, {1: 3})],
    ),
    # A client whose update waits in the buffer is given no task, so client 0 waits from 1 to 2.25 and 3.25 to 4.125.
    "buffered": ({"buffer": 2}, [(2.25, {0: 0, 1: 0}), (4.125, {0: 0, 2: 1}), (5.125, {0: 0, 1: 1})]),
}


def test_over_selection_takes_the_first_of_more_clients() -> None:
    found = steps(fleet([1.0, 2.0, 4.0]), 20, Schedule(sampling_rate=1 / 3), mode="over-select", over_select=1.5)
    for step in found:
        sampled = [flight.client for flight in step.dispatched]
        assert len(sampled) == 2  # ⌈1.5 · 1⌉
        assert [flight.client for flight in step.arrivals] == [min(sampled)]
        assert [flight.client for flight in step.canceled] == [max(sampled)]
    assert {flight.client for step in found for flight in step.dispatched} == {0, 1, 2}


@pytest.mark.parametrize(
    ("options", "own"), [({"mode": "quorum", "quorum": 0.8}, 8), ({"mode": "over-select", "over_select": 1.3}, 10)]
)
def test_carried_updates_do_not_count_towards_the_next_round(options: dict[str, Any], own: int) -> None:
    """Else each round would leave tasks under way, until all clients train at a time."""
    seconds = np.random.default_rng(0).lognormal(size=200).tolist()
    for step in steps(fleet(seconds), 60, Schedule(sampling_rate=0.05), late="carry", **options):
        ages = step.staleness()
        assert ages.count(0) == own and len(ages) <= 2 * own


@pytest.mark.parametrize("options", [{"mode": "quorum", "quorum": 0.8}, {"mode": "over-select", "over_select": 1.3}])
def test_chance_decides_among_clients_that_are_equally_fast(options: dict[str, Any]) -> None:
    counts = np.zeros(20)
    for step in steps(fleet([1.0] * 20), 400, Schedule(sampling_rate=0.5), **options):
        for flight in step.arrivals:
            counts[flight.client] += 1
    assert counts.min() > 0.8 * counts.mean() and counts.max() < 1.2 * counts.mean()


@pytest.mark.parametrize("options", [{"mode": "async"}, {"mode": "buffered", "buffer": 4}])
def test_chance_decides_whose_updates_are_stale_among_clients_that_are_equally_fast(options: dict[str, Any]) -> None:
    """Low numbers came first, and weighed more: client 0 1.7 times as much as client 19, asynchronously."""
    ages: list[list[int]] = [[] for _ in range(20)]
    for step in steps(fleet([1.0] * 20), 8000, Schedule(sampling_rate=0.5), **options):
        for flight, age in zip(step.arrivals, step.staleness(), strict=True):
            ages[flight.client].append(age)
    means = np.array([np.mean(own) for own in ages])
    assert means.min() > 0.9 * means.mean() and means.max() < 1.1 * means.mean()


def test_a_round_that_is_opened_again_waits_for_its_own_clients_alone() -> None:
    """With client 1 alone the deadline passes, and its task is canceled; with client 0 the round is over at once."""
    found = steps(fleet([1.0, 9.0]), 20, Schedule(sampling_rate=0.5), mode="deadline", deadline=3.0)
    assert any(step.canceled for step in found)
    assert all(step.time == step.arrivals[-1].end for step in found)


def test_shares_of_a_cohort_are_rounded_up_without_slips() -> None:
    """1.1 · 100 and 0.55 · 100 are a little more than 110 and 55 in floating point."""
    assert Timing(mode="over-select", over_select=1.1).rule.begins(100, 0) == 110
    assert Timing(mode="quorum", quorum=0.55).rule.updates(100) == 55


@pytest.mark.parametrize(("quorum", "taken"), [(0.25, 1), (0.5, 2), (0.75, 3), (1.0, 4)])
def test_a_quorum_is_a_share_of_the_clients_that_were_there(quorum: float, taken: int) -> None:
    """Ten clients make a usual round, and six are away: the four others cannot reach most shares of ten."""
    away = absent(None, Absence(frozenset(range(6)), 0.0, 99.0), 10)
    (step,) = steps(fleet([float(1 + client) for client in range(10)], away), 1, mode="quorum", quorum=quorum)
    assert [flight.client for flight in step.dispatched] == [6, 7, 8, 9]
    assert told(step) == (6.0 + taken, {6 + place: 0 for place in range(taken)})


def test_carried_updates_do_not_wait_for_clients_that_are_away() -> None:
    """Client 0 is away from 2 to 100; client 1's update arrives at 6, and without a step no idle client is left."""
    windows = from_windows([[(0.0, 2.0)], [(0.0, 90.0)]], period=100.0)
    found = steps(fleet([1.0, 6.0], windows), 4, mode="deadline", deadline=3.0, late="carry")
    assert [told(step) for step in found] == [(3.0, {0: 0}), (6.0, {1: 1}), (12.0, {1: 0}), (18.0, {1: 0})]


def test_all_updates_that_arrive_at_the_deadline_are_in_time() -> None:
    (step,) = steps(fleet([1.0, 3.0, 3.0, 3.0, 4.0]), 1, mode="deadline", deadline=3.0)
    assert told(step) == (3.0, {0: 0, 1: 0, 2: 0, 3: 0}) and [flight.client for flight in step.canceled] == [4]


def test_late_joiners_come_with_the_versions_of_the_model() -> None:
    schedule = Schedule(joins=(1, 2), join_every=2)
    assert [len(step.arrivals) for step in steps(fleet([1.0] * 3), 4, schedule)] == [1, 1, 3, 3]
    found = steps(fleet([1.0] * 3), 6, schedule, mode="async")
    assert [step.time for step in found] == [1.0, 2.0, 3.0, 3.0, 3.0, 4.0]


def test_a_round_waits_for_the_first_client_that_is_there() -> None:
    windows = from_windows([[(10.0, 12.0)], [(5.0, 7.0)]], period=100.0)
    first, second = steps(fleet([1.0, 1.0], windows), 2)
    assert told(first) == (6.0, {1: 0})
    assert told(second) == (7.0, {1: 0})  # there until 7: just in time


def test_a_client_that_leaves_while_it_trains_is_lost() -> None:
    windows = from_windows([[(0.0, 1.0)], [(0.0, 9.0)]], period=20.0)
    (step,) = steps(fleet([2.0, 3.0], windows), 1)
    assert told(step) == (3.0, {1: 0})
    assert [(flight.client, flight.end) for flight in step.lost] == [(0, 1.0)]


# The same while client 1 leaves at 3 and is back at 7.
AWAY: dict[str, tuple[dict[str, Any], list[tuple[float, dict[int, int]]]]] = {
    "sync": ({}, [(4.0, {0: 0, 1: 0, 2: 0}), (8.0, {0: 0, 2: 0}), (12.0, {0: 0, 1: 0, 2: 0})]),
    "deadline": ({"deadline": 3.0}, [(3.0, {0: 0, 1: 0}), (6.0, {0: 0}), (9.0, {0: 0}), (12.0, {0: 0, 1: 0})]),
    "deadline, carry": (
        {"deadline": 3.0, "late": "carry"},
        [(3.0, {0: 0, 1: 0}), (4.0, {0: 0, 2: 1}), (7.0, {0: 0}), (9.0, {0: 0, 1: 0, 2: 1})],
    ),
    # Client 1's second task is lost at 3, so the second round waits for client 2. The third has clients 0 and 2 alone,
    # of which one is half.
    "quorum": ({"quorum": 0.5}, [(2.0, {0: 0, 1: 0}), (6.0, {0: 0, 2: 0}), (7.0, {0: 0})]),
    # The ninth step and client 1's return are both at 7: its next task begins from version 9.
    "async": (
        {},
        [
            *[(1.0, {0: 0}), (2.0, {0: 0}), (2.25, {1: 2}), (3.0, {0: 1}), (4.0, {0: 0}), (4.125, {2: 5})],
            *[(5.0, {0: 1}), (6.0, {0: 0}), (7.0, {0: 0}), (8.0, {0: 0}), (8.25, {2: 4}), (9.0, {0: 1})],
            (9.25, {1: 3}),
        ],
    ),
    # Client 0's update waits for client 2's from 3.25 to 4.125 and 5.125 to 8.25; client 1 is back at 7.
    "buffered": (
        {"buffer": 2},
        [(2.25, {0: 0, 1: 0}), (4.125, {0: 0, 2: 1}), (8.25, {0: 0, 2: 0}), (9.25, {0: 0, 1: 1})],
    ),
}


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("name", BY_HAND)
def test_three_clients_that_take_about_1_2_and_4_seconds(name: str, away: bool) -> None:
    mode, (options, expected) = name.partition(",")[0], (AWAY if away else BY_HAND)[name]
    world = fleet(seconds_of(mode), absent(None, Absence(frozenset({1}), 3.0, 7.0), 3) if away else None)
    assert [told(step) for step in steps(world, len(expected), mode=mode, **options)] == expected


def test_over_selection_without_the_fastest_while_it_is_away() -> None:
    world = fleet([1.0, 2.0, 4.0], absent(None, Absence(frozenset({0}), 0.5, 2.5), 3))
    found = steps(world, 3, Schedule(sampling_rate=1 / 3), mode="over-select", over_select=3.0)
    assert [told(step) for step in found] == [(2.0, {1: 0}), (4.0, {1: 0}), (5.0, {0: 0})]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Fleet, Schedule, Timing, int]:
    count = draw(st.integers(1, 7))
    seconds = draw(st.lists(st.floats(0.1, 9.0), min_size=count, max_size=count))
    windows = None
    if draw(st.booleans()):
        begins = draw(st.lists(st.floats(0.0, 50.0), min_size=count, max_size=count))
        windows = from_windows([[(begin, begin + 40.0)] for begin in begins], period=100.0)
    if count > 1 and draw(st.booleans()):
        windows = absent(
            windows, Absence(frozenset({0}), draw(st.floats(0.0, 30.0)), draw(st.floats(31.0, 60.0))), count
        )
    drop_probability = draw(st.sampled_from([0.0, 0.0, 0.4]))
    mode = draw(st.sampled_from(get_args(get_type_hints(Timing)["mode"])))
    cut_short = hasattr(Timing(mode).rule, "late")
    late: Any = draw(st.sampled_from(get_args(get_type_hints(Timing)["late"]))) if cut_short else "drop"
    rate = draw(st.sampled_from([0.3, 0.7, 1.0]))
    buffer = draw(st.integers(1, max(1, round(rate * count))))
    joins = draw(st.sampled_from([(), (count - count // 2, count // 2)] if count > 1 and mode != "buffered" else [()]))
    timing = Timing(mode=mode, late=late, deadline=10.0 if mode == "deadline" else 0.0, buffer=buffer)
    return (
        fleet(seconds, windows, drop_probability),
        Schedule(sampling_rate=rate, joins=joins, join_every=2 if joins else 0),
        timing,
        draw(st.integers(1, 12)),
    )


@settings(max_examples=150)
@given(worlds())
def test_what_holds_in_every_world(world: tuple[Fleet, Schedule, Timing, int]) -> None:
    clients, schedule, timing, rounds = world
    found, _ = plan(ClockSettings(3, timing, schedule, [1] * rounds), clients)
    assert [step.number for step in found] == list(range(1, rounds + 1))
    assert all(before.time <= after.time for before, after in itertools.pairwise(found))
    ended = [flight for step in found for flight in (*step.arrivals, *step.lost, *step.canceled)]
    begun = [flight for step in found for flight in step.dispatched]
    # Each task ends at most once; those that have not ended are under way at the end of the run.
    keys = [(flight.client, flight.start) for flight in ended]
    assert len(set(keys)) == len(keys)
    assert set(keys) <= {(flight.client, flight.start) for flight in begun}
    assert [flight.version for step in found for flight in step.dispatched] == [
        step.number - 1 for step in found for _ in step.dispatched
    ]
    ends = {(flight.client, flight.start): flight.end for flight in begun} | {
        (flight.client, flight.start): flight.end for flight in ended
    }
    for client in range(clients.profiles.clients):
        own = sorted((start, end) for (each, start), end in ends.items() if each == client)
        assert all(before <= after for (_, before), (after, _) in itertools.pairwise(own))  # never two at once
        if clients.profiles.availability is not None:
            for start, end in own:
                assert clients.profiles.availability.until(client, start) >= end
    for step in found:
        assert step.arrivals
        assert min(step.staleness()) >= 0
        assert timing.stale or max(step.staleness()) == 0
        assert [flight.client for flight in step.arrivals] == sorted({flight.client for flight in step.arrivals})
        assert all(flight.end <= step.time for flight in step.arrivals)
        if timing.mode == "buffered":
            assert len(step.arrivals) == timing.buffer


@pytest.mark.parametrize(
    ("clients", "rounds", "options", "text"),
    [
        (fleet([2.0, 3.0]), 1, {"mode": "deadline", "deadline": 1.5}, "no client can meet 1.5 .* the fastest takes 2"),
        (fleet([1.0, 1.0]), 1, {"mode": "buffered", "buffer": 3}, "3 updates .*, and there are 2 at the start"),
        (
            fleet([1.0, 1.0], from_windows([[(0.0, 9.0)], []])),
            1,
            {"mode": "buffered", "buffer": 2},
            "2 updates of different clients, and only 1 of 2 clients can ever be available. .*devices.trace",
        ),
        (fleet([1.0], from_windows([[]])), 1, {}, "no client is ever available"),
        (fleet([1.0, 1.0], drop_probability=1.0), 1, {}, "1000 cohorts in a row brought no update"),
        (fleet([1.0], from_windows([[(0.0, 2.5)]])), 3, {}, "round 3: no client is available any more"),
        (
            fleet([1.0, 1.0], from_windows([[(0.0, 9.0)], [(0.0, 0.5)]])),
            1,
            {"mode": "buffered", "buffer": 2},
            "after 1 virtual seconds with 1 update in the buffer, .*Lower timing.buffer or schedule.rounds",
        ),
    ],
)
def test_what_can_never_be_and_a_world_that_ends_are_refused(
    clients: Fleet, rounds: int, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        steps(clients, rounds, **options)
