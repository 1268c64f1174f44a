"""Windows of availability, once and with a period, against a look at every moment."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysim.virtual_time.devices.availability import DAY, Absence, absent, daily, from_windows

HOUR = 3600.0


def test_windows_that_come_once() -> None:
    found = from_windows([[(1.0, 3.0), (5.0, 6.0)], []])
    assert [found.until(0, time) for time in (0.0, 1.0, 2.9, 3.0, 5.5, 6.0)] == [
        -math.inf,
        3.0,
        3.0,
        -math.inf,
        6.0,
        -math.inf,
    ]
    assert [found.next(0, time) for time in (0.0, 2.0, 3.0, 6.0)] == [1.0, 2.0, 5.0, math.inf]
    assert found.next(1, 0.0) == math.inf


def test_a_night_goes_on_after_midnight() -> None:
    found = daily(np.array([22 * HOUR]), np.array([8 * HOUR]))
    assert found.until(0, 23 * HOUR) == DAY + 6 * HOUR
    assert found.until(0, DAY + 5 * HOUR) == DAY + 6 * HOUR
    assert found.next(0, DAY + 6 * HOUR) == DAY + 22 * HOUR


def test_a_whole_day_has_no_end() -> None:
    found = daily(np.array([3 * HOUR]), np.array([DAY]))
    assert found.until(0, 5.5 * DAY) == math.inf


@given(
    st.lists(st.integers(0, 19), unique=True, min_size=1, max_size=10).map(sorted),
    st.integers(0, 60),
    st.booleans(),
)
def test_against_a_look_at_every_second(seconds: list[int], time: int, repeats: bool) -> None:
    """Windows of one second each, in a period of 20; neighbors are one window."""
    found = from_windows([[(float(second), second + 1.0) for second in seconds]], period=20.0 if repeats else math.inf)
    there = [(second % 20 if repeats else second) in seconds for second in range(200)]
    expected = next((second for second in range(time, 200) if there[second]), math.inf)
    assert found.next(0, float(time)) == expected
    if there[time]:
        end = next((second for second in range(time, 200) if not there[second]), math.inf)
        assert found.until(0, float(time)) == end
    else:
        assert found.until(0, float(time)) == -math.inf


@given(st.floats(0.0, 0.99), st.floats(0.1, 1e5), st.floats(0.0, 1e6))
def test_a_wait_for_a_window_ends_where_it_is_open(start: float, period: float, time: float) -> None:
    """In spite of rounding, or a clock that goes on to the next window would never get there."""
    found = from_windows([[(start * period, (start + 0.01) * period)]], period)
    assert found.until(0, found.next(0, time)) > found.next(0, time)


@pytest.mark.parametrize("period", [0.7, 33.3, 100 / 3])
def test_no_window_is_left_out_where_a_period_is_rounded(period: float) -> None:
    """Some multiples of such a period, divided by it, are rounded down to the period before, and a run never ended."""
    found, time = from_windows([[(0.0, period / 2)]], period), 0.0
    for number in range(1000):
        begin = found.next(0, time)
        assert begin == pytest.approx(number * period)
        time = found.until(0, begin)
        assert time == pytest.approx((number + 0.5) * period)


@pytest.mark.parametrize(
    ("windows", "text"),
    [
        ([(3.0, 3.0)], "window 3-3 is not 0 ≤ start < end"),
        ([(-1.0, 2.0)], "window -1-2"),
        ([(0.0, 11.0)], "end ≤ 10"),
        ([(0.0, 5.0), (4.0, 6.0)], "window 4-6 begins before the one before has ended"),
    ],
)
def test_windows_that_cannot_be(windows: list[tuple[float, float]], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        from_windows([[(0.0, 1.0)], windows], period=10.0)


def test_absence_cuts_windows_and_ends_with_the_next() -> None:
    found = absent(from_windows([[(0.0, 6.0)], [(0.0, 6.0)]], period=10.0), Absence(frozenset({1}), 2.0, 17.0), 2)
    times = (0.0, 2.0, 12.0, 16.5, 17.0, 20.0)
    assert [found.until(0, time) for time in times] == [6.0, 6.0, 16.0, -math.inf, -math.inf, 26.0]
    assert [found.until(1, time) for time in times] == [2.0, *[-math.inf] * 4, 26.0]
    assert [found.next(1, time) for time in times] == [0.0, 20.0, 20.0, 20.0, 20.0, 20.0]
    gone = absent(None, Absence(frozenset({0}), 5.0), 2)
    assert (gone.until(0, 1.0), gone.next(0, 5.0), gone.until(1, 1e9)) == (5.0, math.inf, math.inf)
