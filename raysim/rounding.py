"""Shares of a number of things, rounded up to whole ones. Imports nothing large."""

from __future__ import annotations

import math
import sys

SLIPS = 2 * sys.float_info.epsilon
"""More than the rounding of a share and of its product with a number change that product, relative to it."""


def rounded_up(share: float, count: int) -> int:
    """⌈share · count⌉, where a share of few digits gives what it gives on paper: 0.14 of 50 is 7.

    The product of the nearest floating-point numbers is 7.000000000000001, whose ceiling is 8.
    """
    return math.ceil(share * count * (1 - SLIPS))
