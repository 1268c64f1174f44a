"""The membership test."""

from __future__ import annotations

import numpy as np
import pytest

from raysim.replay.membership import area


def test_area_is_the_share_of_pairs_in_which_the_member_has_the_smaller_loss() -> None:
    members, others = np.array([0.1, 0.3, 0.5]), np.array([0.3, 0.9])
    by_hand = [1, 1, 0.5, 1, 0, 1]  # 0.1 < 0.3, 0.1 < 0.9, 0.3 = 0.3, 0.3 < 0.9, 0.5 > 0.3, 0.5 < 0.9
    assert area(members, others) == pytest.approx(sum(by_hand) / 6)
    assert area(np.zeros(3), np.zeros(4)) == 0.5
