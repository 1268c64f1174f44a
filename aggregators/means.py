"""Sums of flat update vectors, whose bits depend on the order of the vectors and on nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# 256 KiB of float32: accumulator and product stay in a core's L2 cache while all vectors pass over them. Twice as fast
# as whole-vector `total += c * v` from d = 2e6 on, and as `tensordot` of the stack, which also copies n × d first.
BLOCK = 65_536


def weighted_sum(vectors: Sequence[NDArray[np.float32]], coefficients: Sequence[float]) -> NDArray[np.float32]:
    """Σ_k coefficients[k] · vectors[k], in float32, added in the order given.

    Args:
        vectors: n vectors float32 [d]; they are only read (views of shared memory will do).
        coefficients: n numbers, each rounded to float32 first.

    Returns:
        A new vector float32 [d]. Every element is the same chain of rounded multiplications and additions whatever
        the block size; no BLAS is involved, so the number of threads cannot change it.

    Raises:
        ValueError: no vectors, not one coefficient a vector, or vectors that are not float32 of one common length.
    """
    check_vectors(vectors)
    if len(coefficients) != len(vectors):
        raise ValueError(f"{len(vectors)} vectors but {len(coefficients)} coefficients: give one a vector")
    factors = [np.float32(coefficient) for coefficient in coefficients]
    total = np.empty_like(vectors[0])
    product_buffer = np.empty(min(BLOCK, total.size), np.float32)
    for start in range(0, total.size, BLOCK):
        block = total[start : start + BLOCK]
        product = product_buffer[: block.size]
        np.multiply(vectors[0][start : start + BLOCK], factors[0], out=block)
        for vector, factor in zip(vectors[1:], factors[1:], strict=True):
            np.multiply(vector[start : start + BLOCK], factor, out=product)
            np.add(block, product, out=block)
    return total


def plain_mean(vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """(1/n) Σ_k x_k, the mean in which every vector counts the same, added in the order given.

    Args:
        vectors: n vectors float32 [d]; they are only read.

    Returns:
        A new vector float32 [d], with the bits of :func:`weighted_sum` for n coefficients of 1/n.

    Raises:
        ValueError: as :func:`weighted_sum`.
    """
    return weighted_sum(vectors, [1 / len(vectors) for _ in vectors])


class PairwiseSum:
    """Σ_k x_k along a fixed binary tree over the positions k = 0, 1, …, one vector at a time.

    Node (l, j) of the tree is the sum of positions j·2^l to (j+1)·2^l − 1: its left half plus its right half. Whoever
    holds any neighbors can add these alone as far as they are whole nodes (:meth:`nodes`), and the sum of all such
    nodes, in their order, has the bits of the whole: the number of workers, and the share of each, leave no trace. At
    most 2 log2(n) vectors are held, half of that from position 0 on. The rounding error grows with log n (Higham 1993,
    The accuracy of floating point summation, section 3).

    Args:
        first: the position of the first vector.
    """

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._nodes: list[tuple[int, int, NDArray[np.float32] | None]] = []
        """First position, size and sum of the complete nodes that have not met their sibling, in order."""

    def add(self, vector: NDArray[np.float32] | None, positions: int = 1) -> None:
        """The next position's vector [d], which is given away (it may be overwritten); None if it has none.

        Or the sum of a node, the next 2^l positions from a multiple of 2^l on.
        """
        start, size = self._next, positions
        self._next += positions
        while self._nodes and self._nodes[-1][1] == size and start % (2 * size) == size:
            start, _, left = self._nodes.pop()
            vector = _sum_of_two(left, vector)
            size *= 2
        self._nodes.append((start, size, vector))

    def nodes(self) -> tuple[tuple[NDArray[np.float32] | None, int], ...]:
        """Sum and size of the fewest tree nodes that make up the added vectors, in order.

        They are what :meth:`add` of another sum takes. Nothing may be added afterwards.
        """
        return tuple((vector, size) for _, size, vector in self._nodes)

    def total(self) -> NDArray[np.float32] | None:
        """The sum [d]; None if there was no vector. Nothing may be added afterwards."""
        total = None
        for _, _, vector in reversed(self._nodes):
            total = _sum_of_two(vector, total)
        return total


def node_count(first: int, positions: int) -> int:
    """How many nodes :class:`PairwiseSum` makes of ``positions`` neighbors from ``first`` on."""
    stop, count = first + positions, 0
    while first < stop:
        largest = first & -first or 1 << positions.bit_length()
        first += min(largest, 1 << (stop - first).bit_length() - 1)
        count += 1
    return count


def _sum_of_two(left: NDArray[np.float32] | None, right: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    if left is None or right is None:
        return right if left is None else left
    # Vectors from the object store cannot be written to.
    return np.add(left, right, out=left if left.flags.writeable else None)


def mean_of_parameters(
    vectors: Sequence[NDArray[np.float32]], parameters: int, samples: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.float32]:
    """The plain mean of the parameters, and the mean by samples of what lies behind them: BatchNorm's statistics.

    Args:
        vectors: n vectors float32 [d]; they are only read.
        parameters: p, how many entries of each are parameters.
        samples: the clients' numbers of training samples [n].

    Returns:
        A new vector float32 [d].

    Raises:
        ValueError: as :func:`weighted_sum` and, where d > p, :func:`sample_weights`.
    """
    mean = plain_mean(vectors)
    if mean.size > parameters:
        statistics = [vector[parameters:] for vector in vectors]
        mean[parameters:] = weighted_sum(statistics, sample_weights(samples).tolist())
    return mean


def sample_weights(samples: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
    """p_k = m_k / Σ_j m_j, float64 [n], from the clients' numbers of training samples m_k.

    Raises:
        ValueError: a negative number, or no samples at all.
    """
    counts = np.asarray(samples, np.float64)
    total = counts.sum()
    if total <= 0 or counts.min() < 0:
        raise ValueError(f"sample counts must be non-negative with a positive sum, got {samples}")
    return np.asarray(counts / total)


def check_vectors(vectors: Sequence[NDArray[np.float32]]) -> None:
    """Raise ValueError unless there is at least one vector and all are float32 of one common length."""
    if len(vectors) == 0:
        raise ValueError("no vectors: at least one is needed")
    for position, vector in enumerate(vectors):
        if vector.dtype != np.float32 or vector.ndim != 1 or vector.shape != vectors[0].shape:
            raise ValueError(
                f"vector {position} is {vector.dtype} {vector.shape}; expected float32 {vectors[0].shape}, one axis"
            )
