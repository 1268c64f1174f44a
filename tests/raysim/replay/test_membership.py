"""The membership test."""

from __future__ import annotations

import numpy as np
import pytest

from raysim.replay.membership import area, interval


def test_area_is_the_share_of_pairs_in_which_the_member_has_the_smaller_loss() -> None:
    members, others = np.array([0.1, 0.3, 0.5]), np.array([0.3, 0.9])
    by_hand = [1, 1, 0.5, 1, 0, 1]  # 0.1 < 0.3, 0.1 < 0.9, 0.3 = 0.3, 0.3 < 0.9, 0.5 > 0.3, 0.5 < 0.9
    assert area(members, others) == pytest.approx(sum(by_hand) / 6)
    assert area(np.zeros(3), np.zeros(4)) == 0.5


def test_the_interval_is_of_the_difference_on_the_same_samples() -> None:
    draw = np.random.default_rng(1)
    members, others = draw.random(80), draw.random(40)
    assert interval([members, members], [others, others]) == (0.0, 0.0)
    low, high = interval([members - 0.5, members], [others, others])  # the second model tells them apart less
    assert -1 <= low < area(members, others) - area(members - 0.5, others) < high < 0
