"""Weights of stale updates, and what a server step makes of them, on numbers by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.config.timing import Timing
from raysim.method import Update, Updates
from raysim.virtual_time.staleness import adjusted, staleness_weight, weighted


def vector(*values: float) -> Any:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"staleness": "constant"}, [1, 1, 1]),
        ({"staleness": "polynomial", "staleness_slope": 0.5}, [1, 0.5, 0.25]),  # 1, 4^−½, 16^−½
        ({"staleness": "hinge", "staleness_slope": 10.0, "staleness_delay": 4}, [1, 1, 1 / 111]),
    ],
)
def test_weights_after_0_3_and_15_steps(options: dict[str, Any], expected: list[float]) -> None:
    assert [staleness_weight(Timing(**options), steps) for steps in (0, 3, 15)] == pytest.approx(expected)


def test_fedasync_mixes_models() -> None:
    """θ ← (1 − α s) θ + α s (θ_τ + Δ) with α = 0.6 and s = 1/2: 0.7 · (4, 4) + 0.3 · (1 + 1, 2 − 1)."""
    timing = Timing(mode="async", mixing=0.6)
    base, current = vector(1, 2), vector(4, 4)
    found = adjusted(Update(vector(1, -1)), timing, 3, base, current)
    assert current + found.delta == pytest.approx(vector(0.7 * 4 + 0.3 * 2, 0.7 * 4 + 0.3 * 1))


def test_fedasync_without_staleness_takes_the_change_itself() -> None:
    base = vector(1e8, 1e8)  # a sum with such a base would round the change away
    found = adjusted(Update(vector(1, -1)), Timing(mode="async", mixing=0.5), 0, base, base)
    assert found.delta.tolist() == [0.5, -0.5]


def test_fedbuff_weights_changes() -> None:
    timing = Timing(mode="buffered")
    update = Update(vector(2, -4), {"steps": 1.0}, {"extra": 3})
    found = adjusted(update, timing, 3, vector(9, 9), vector(7, 7))
    assert (found.delta.tolist(), found.metrics, found.extra) == ([1.0, -2.0], {"steps": 1.0}, {"extra": 3})
    assert adjusted(update, timing, 0, vector(9, 9), vector(7, 7)) is update


@pytest.mark.parametrize("mode", ["buffered", "async"])
def test_statistics_of_a_stale_update_go_towards_the_client_s(mode: Any) -> None:
    """The third entry is a running variance: 3 where the client ended, from 9; now 4, so it goes half of −1."""
    timing = Timing(mode=mode, mixing=1.0)
    update = Update(vector(2, -4, -6))
    found = adjusted(update, timing, 3, vector(9, 9, 9), vector(7, 7, 4), parameters=2)
    assert found.delta[2] == -0.5
    assert adjusted(update, timing, 0, vector(9, 9, 9), vector(9, 9, 9), parameters=2).delta[2] == -6


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 9), st.floats(0.01, 9), st.integers(0, 9)), min_size=1, max_size=5))
def test_a_variance_stays_positive_whatever_the_clients_started_from(clients: list[tuple[float, float, int]]) -> None:
    """Each client: the variance it started from, that it ended with, and its staleness; now it is 0.5."""
    now, count = vector(0.5), len(clients)
    updates = Updates(
        tuple(range(count)),
        np.ones(count, np.int64),
        tuple(Update(vector(end - (begin if late else 0.5))) for begin, end, late in clients),
        staleness=tuple(late for *_, late in clients),
    )
    bases = [vector(begin) if late else now for begin, _, late in clients]
    found = weighted(updates, Timing(mode="buffered"), bases, [now] * count, sums=False, parameters=0)
    assert now + found.mean() > 0
