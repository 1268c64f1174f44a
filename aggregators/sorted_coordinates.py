"""Robust means of each coordinate by itself: the median and the trimmed mean of flat update vectors.

Coordinates are sorted a block at a time: beside the result that takes memory for n values of each of a block's
coordinates, however long the vectors are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from aggregators.gram import Doubles, one_blas_thread
from aggregators.means import check_vectors

Vector = NDArray[np.float32]

BLOCK = 8192
"""Coordinates that are sorted at a time: 50 rows of them are 1.6 MB."""


def coordinate_median(vectors: Sequence[Vector], mixing: Doubles | None = None) -> Vector:
    """The median of every coordinate, float32 [d]; of an even number of vectors the mean of the two in the middle.

    Source: Yin et al. 2018, Byzantine-robust distributed learning (ICML; arXiv 1803.01498), Definition 1.

    Args:
        vectors: n vectors float32 [d]; they are only read.
        mixing: m × n weights (:func:`aggregators.robust.nearest_neighbor_mixing`): the m mixed vectors take the place
            of the n; None: the vectors themselves.

    Raises:
        ValueError: no vectors, or vectors that are not float32 of one common length.
    """
    count = len(vectors) if mixing is None else len(mixing)
    return _mean_of_middle(vectors, (count - 1) // 2, mixing)


def trimmed_mean(vectors: Sequence[Vector], trimmed: int, mixing: Doubles | None = None) -> Vector:
    """The mean of every coordinate without its ``trimmed`` smallest and largest values, float32 [d].

    Source: Yin et al. 2018, Definition 2, with β = trimmed / n.

    Raises:
        ValueError: nothing would be left, or vectors as in :func:`coordinate_median`.
    """
    count = len(vectors) if mixing is None else len(mixing)
    if not 0 <= 2 * trimmed < count:
        raise ValueError(f"{trimmed} values trimmed at both ends of {count} leave none; at most {(count - 1) // 2}")
    return _mean_of_middle(vectors, trimmed, mixing)


def _mean_of_middle(vectors: Sequence[Vector], cut: int, mixing: Doubles | None) -> Vector:
    """The mean of every coordinate's values but the ``cut`` smallest and largest."""
    check_vectors(vectors)
    result = np.empty_like(vectors[0])
    for start, rows in _blocks(vectors, mixing):
        middle = np.sort(rows, axis=0)[cut : len(rows) - cut]
        # Each share is added by itself: the sum of values near the largest float would overflow.
        block = result[start : start + rows.shape[1]]
        np.multiply(middle, np.float32(1 / len(middle)), out=middle)
        np.add.reduce(middle, axis=0, out=block)
    return result


def _blocks(vectors: Sequence[Vector], mixing: Doubles | None) -> Iterator[tuple[int, Vector]]:
    """The start and the rows [m, ≤ BLOCK] of every block of coordinates, which may be written to."""
    size = vectors[0].size
    rows = np.empty((len(vectors), min(BLOCK, size)), np.float32)
    weights = None if mixing is None else mixing.astype(np.float32)
    for start in range(0, size, BLOCK):
        block = rows[:, : min(BLOCK, size - start)]
        for row, vector in zip(block, vectors, strict=True):
            row[:] = vector[start : start + BLOCK]
        if weights is None:
            yield start, block
        else:
            with one_blas_thread():
                mixed = weights @ block
            yield start, mixed
