"""A share of a number of things is rounded up as on paper."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysim.rounding import rounded_up


@given(st.integers(0, 30_000), st.integers(0, 10**9))
def test_a_share_of_four_digits_is_exact(share: int, count: int) -> None:
    assert rounded_up(share / 10_000, count) == math.ceil(Fraction(share, 10_000) * count)


@pytest.mark.parametrize(
    ("share", "count", "whole"),
    [(0.14, 50, 7), (1.1, 100, 110), (0.55, 100, 55), (1 / 3, 4, 2), (0.67, 5 * 10**7, 33_500_000)],
)
def test_where_the_product_is_rounded_the_share_is_not(share: float, count: int, whole: int) -> None:
    assert rounded_up(share, count) == whole
