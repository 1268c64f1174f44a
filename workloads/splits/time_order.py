"""Test sets of what comes in order of time: the end of each group of samples, without overlap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.splits.partition import Integers, ranks


def hold_out_ends(groups: Integers, share: float, gap: int) -> tuple[Integers, Integers]:
    """(training, test): positions of the samples; the last ``share`` (rounded) of each group is for the test.

    The ``gap`` samples before them overlap with them, and are in neither. At least one sample of a group is tested, and
    one trained on; a group that is too small for that is for training alone, as all are for a share of 0.

    Args:
        groups: group of each sample, int64 [N]; the samples of a group are in order of time.
        share: of a group's samples.
        gap: number of samples that overlap with the one that follows them.
    """
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    rank = ranks(group, len(sizes), np.arange(len(groups)))
    wanted = np.maximum(np.floor(sizes * share + 0.5).astype(np.int64), 1)
    tests = np.where(sizes >= gap + 2, np.minimum(wanted, sizes - gap - 1), 0) if share else np.zeros_like(sizes)
    first = (sizes - tests)[group]
    tested: NDArray[np.bool_] = rank >= first
    trained = rank < np.where(tests > 0, sizes - tests - gap, sizes)[group]
    return np.flatnonzero(trained), np.flatnonzero(tested)
