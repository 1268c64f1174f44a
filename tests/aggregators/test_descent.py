from __future__ import annotations

import numpy as np
import pytest

from raysim.aggregators.descent import plain_steps


def test_without_momentum_it_is_the_number_of_steps() -> None:
    assert plain_steps(np.array([1, 7])).tolist() == [1.0, 7.0]


def test_with_momentum_it_is_the_way_along_a_constant_gradient() -> None:
    for momentum in (0.5, 0.9):
        way, velocity = 0.0, 0.0
        for step in range(1, 9):
            velocity = momentum * velocity + 1.0
            way += velocity
            assert plain_steps(step, momentum) == pytest.approx(way, rel=1e-12)
