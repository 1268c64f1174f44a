"""Whole numbers on a grid with a scale for each 4096 entries, rounded such that the mean is the value.

Source: Alistarh et al. 2017, QSGD (arXiv 1610.02132), section 3.1: an entry goes to the grid point above or below it,
to either with the probability that makes the mean the value, and so is off by less than its block's max |v| / levels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.method import Vector

SCALED = 4096
"""Entries that share a scale."""


def rounded(vector: Vector, levels: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Scales [⌈d / 4096⌉] and whole numbers from −levels to levels [d]."""
    starts = np.arange(0, vector.size, SCALED)
    scales = (np.maximum.reduceat(np.abs(vector), starts) / np.float32(levels)).astype(np.float32)
    each = np.repeat(scales, SCALED)[: vector.size]
    ratios = np.divide(vector, each, out=np.zeros(vector.size), where=each > 0)
    draws = np.random.default_rng(seed).random(vector.size)
    return scales, np.clip(np.floor(ratios + draws), -levels, levels).astype(np.int8)


def restored(scales: NDArray[Any], numbers: NDArray[Any]) -> Vector:
    """Number times scale [d]."""
    return np.asarray(numbers.astype(np.float32) * np.repeat(scales, SCALED)[: len(numbers)])


def scale_bytes(entries: int) -> int:
    """Four bytes for each scale."""
    return 4 * -(-entries // SCALED)
