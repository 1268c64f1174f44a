"""Robust means of each coordinate by itself: the median and the trimmed mean of flat update vectors.

Coordinates are taken a block at a time by each core: beside the result that takes memory for n values of each of a
block's coordinates and core, however long the vectors are. Which core takes which block changes no bit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.gram import Doubles, one_blas_thread
from raysim.aggregators.means import check_vectors

Vector = NDArray[np.float32]

BLOCK = 32_768
"""Coordinates that are compared at a time: 50 rows of them are 6.6 MB. Long rows hide what a call costs."""


def coordinate_median(vectors: Sequence[Vector], mixing: Doubles | None = None) -> Vector:
    """The median of every coordinate, float32 [d]; of an even number of vectors the mean of the two in the middle.

    Source: Yin et al. 2018, Byzantine-robust distributed learning (ICML; arXiv 1803.01498), Definition 1.

    Args:
        vectors: n vectors float32 [d]; they are only read.
        mixing: m × n weights (:func:`raysim.aggregators.robust.nearest_neighbor_mixing`): the m mixed vectors take
            the place of the n; None: the vectors themselves.

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
    """The mean of every coordinate's values but the ``cut`` smallest and largest, added in float64.

    nan counts as the largest value of all.
    """
    check_vectors(vectors)
    result = np.empty_like(vectors[0])
    weights = None if mixing is None else mixing.astype(np.float32)
    count = len(vectors) if weights is None else len(weights)
    threads = min(len(os.sched_getaffinity(0)), -(-result.size // BLOCK))

    def fill(first: int) -> None:
        """Every block of a thread; NumPy lets other threads work while it compares."""
        buffer = np.empty((count + 1, min(BLOCK, result.size)), np.float32)
        for start in range(first * BLOCK, result.size, threads * BLOCK):
            rows = [vector[start : start + BLOCK] for vector in vectors]
            if weights is not None:
                rows = list(weights @ np.array(rows))
            total = _sum_of_middle(rows, cut, buffer)
            if np.isnan(total).any():  # minimum and maximum hand nan on, and every value has a way to the middle
                total = _sum_of_middle([np.fmin(row, np.float32(np.inf)) for row in rows], cut, buffer)
            result[start : start + total.size] = total / (count - 2 * cut)

    with one_blas_thread(), ThreadPoolExecutor(max(threads, 1)) as pool:
        list(pool.map(fill, range(threads)))
    return result


def _sum_of_middle(rows: Sequence[Vector], cut: int, buffer: Vector) -> Doubles:
    """The sum of every coordinate's values in the middle; ``rows`` are only read, ``buffer`` has one row more."""
    rows, own = list(rows), [False] * len(rows)
    spare = list(buffer[:, : rows[0].size])
    for low, high, smaller, larger in comparisons(len(rows), cut):
        first, second = rows[low], rows[high]
        if smaller:
            rows[low] = np.minimum(first, second, out=spare.pop())
        if larger:
            rows[high] = np.maximum(first, second, out=second if own[high] else spare.pop())
        if smaller and own[low]:
            spare.append(first)
        own[low], own[high] = own[low] or smaller, own[high] or larger
    middle = rows[cut : len(rows) - cut]
    total = middle[0].astype(np.float64)
    for row in middle[1:]:
        total += row
    return total


@lru_cache(maxsize=16)  # a network of 1,000 rows takes megabytes, and random cohorts have many sizes
def comparisons(count: int, cut: int) -> tuple[tuple[int, int, bool, bool], ...]:
    """Pairs (i, j) of rows to compare: rows ``cut`` to n − 1 − ``cut`` get the values in the middle, in any order.

    Row i takes the smaller values and row j the larger, each if the flag behind the pair says that it is read again.

    Both halves of the rows are sorted. Of the ``cut`` smallest values of a half, the k-th smallest against the k-th
    largest of the other half's, the smaller are the ``cut`` smallest of all; likewise the largest. If these meet
    within a half, all rows are sorted together. Rows are compared as a whole, where a sort of the values takes the
    coordinates one by one. What only puts rows into order that are added up, or left out, together is not done.
    """
    half = count // 2
    if 2 * cut > half:
        network = _merge_exchange(count)
    else:
        network = _merge_exchange(half) + [(half + low, half + high) for low, high in _merge_exchange(count - half)]
        network += [(k, half + cut - 1 - k) for k in range(cut)]
        network += [(half - 1 - k, count - cut + k) for k in range(cut)]
    middle, compared = range(cut, count - cut), set[int]()
    needed: list[tuple[int, int, bool, bool]] = []
    for low, high in reversed(network):
        smaller, larger = low in middle or low in compared, high in middle or high in compared
        together = low in middle and high in middle and compared.isdisjoint((low, high))
        if (smaller or larger) and not together:
            compared.update((low, high))
            needed.append((low, high, smaller, larger))
    return tuple(reversed(needed))


def _merge_exchange(count: int) -> list[tuple[int, int]]:
    """Pairs of rows that sort ``count`` rows.

    Source: Knuth, The Art of Computer Programming 3, Algorithm 5.2.2M (Batcher's merge exchange).
    """
    network: list[tuple[int, int]] = []
    top = 1 << (count - 1).bit_length() >> 1
    bit = top
    while bit:
        step, remainder, distance = top, 0, bit
        while True:
            network += [(i, i + distance) for i in range(count - distance) if i & bit == remainder]
            if step == bit:
                break
            distance, step, remainder = step - bit, step >> 1, bit
        bit >>= 1
    return network
