"""What has to be computed for some rounds, and distances in units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from raysim.verification.differences import units
from raysim.verification.recompute import spans


@pytest.mark.parametrize(
    ("wanted", "kept", "found"),
    [
        ([3], [], [(0, 3)]),
        ([3, 17], [5, 15, 20], [(0, 3), (15, 17)]),
        ([5, 6, 16], [5], [(0, 5), (5, 16)]),
        ([20], [15, 20], [(15, 20)]),
    ],
)
def test_spans_begin_at_the_nearest_checkpoint(
    wanted: list[int], kept: list[int], found: list[tuple[int, int]]
) -> None:
    assert spans(wanted, kept) == found


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_units_count_the_floats_between_two(kind: Any) -> None:
    one = np.array([1.0, -1.0, 0.0], kind)
    after = np.nextafter(one, np.array([2.0, -2.0, 1.0], kind))
    assert units(one, one).tolist() == [0, 0, 0] and units(one, after).tolist() == [1, 1, 1]
    below = np.nextafter(np.array([0.0], kind), np.array([-1.0], kind))
    assert units(below, np.array([0.0], kind)) == [1] and units(below, after[2:]) == [2]
