"""Gradients, estimated from the change that a number of local SGD steps made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def plain_steps(steps: int | Sequence[int] | NDArray[np.int64], momentum: float = 0.0) -> NDArray[np.float64]:
    """Number of steps without momentum that lead as far along a constant gradient as ``steps`` with it.

    Σ_{t ≤ s} (1 − μ^t) / (1 − μ), from a velocity of zero; s itself for μ = 0. In SGD's change Δ of the parameters this
    is the sum of the weights of the s gradients, so that −Δ / (learning rate · this) is a weighted mean of them.

    Args:
        steps: numbers of local SGD steps, any shape.
        momentum: μ in [0, 1).
    """
    counts = np.asarray(steps, np.float64)
    return np.asarray((counts - momentum * (1 - momentum**counts) / (1 - momentum)) / (1 - momentum))
