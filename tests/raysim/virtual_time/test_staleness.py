"""Weights of stale updates, and what a server step makes of them, on numbers by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from raysim.config.timing import Timing
from raysim.method import Update
from raysim.virtual_time.staleness import adjusted, staleness_weight


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
