"""Low-rank factors of the matrices that a flat vector is made of, as PowerSGD makes them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aggregators.gram import one_blas_thread

if TYPE_CHECKING:
    from raysim.method import Shape, Vector


def factors(vector: Vector, shapes: Sequence[Shape], rank: int, seed: int) -> dict[str, NDArray[Any]]:
    """What travels of a vector [d]: P and Q of every matrix that they are smaller than, all other entries as they are.

    Source: Vogels et al. 2019, PowerSGD (arXiv 1905.13727), Algorithm 1. A tensor counts as the matrix M of its first
    axis and all others; P = M Q from a normal Q [columns, rank] has its columns made orthonormal, then Q = Mᵀ P. What
    arrives, P Qᵀ = P Pᵀ M, is a projection of M: never longer than M, and M itself if its rank is ``rank`` or less.

    Two departures: every client has factors of its own (the paper's workers average P before it is made orthonormal),
    and Q is drawn anew each time, so that nothing is kept.

    Args:
        vector: finite numbers.
        shapes: of the tensors that it holds, in order.
        rank: r, the number of columns of P and Q.
        seed: of the first Q.
    """
    draws = np.random.default_rng(seed)
    whole, left, right = ([np.zeros(0, np.float32)] for _ in range(3))
    with one_blas_thread():
        for piece, rows, columns in _matrices(shapes, rank):
            if not columns:
                whole.append(vector[piece])
                continue
            matrix = vector[piece].reshape(rows, columns)
            basis, _ = np.linalg.qr(matrix @ draws.standard_normal((columns, rank), np.float32))
            left.append(basis.reshape(-1))
            right.append((matrix.T @ basis).reshape(-1))
    return {"whole": np.concatenate(whole), "left": np.concatenate(left), "right": np.concatenate(right)}


def product(payload: dict[str, NDArray[Any]], shapes: Sequence[Shape], rank: int) -> Vector:
    """The vector [d] that the receiver makes of :func:`factors`."""
    result: Vector = np.empty(sum(map(math.prod, shapes)), np.float32)
    taken = dict.fromkeys(payload, 0)

    def take(name: str, count: int) -> NDArray[Any]:
        start = taken[name]
        taken[name] += count
        return payload[name][start : start + count]

    with one_blas_thread():
        for piece, rows, columns in _matrices(shapes, rank):
            if columns:
                left, right = take("left", rows * rank), take("right", columns * rank)
                result[piece] = (left.reshape(rows, rank) @ right.reshape(columns, rank).T).reshape(-1)
            else:
                result[piece] = take("whole", rows)
    return result


def numbers_sent(shapes: Sequence[Shape], rank: int) -> int:
    """How many numbers :func:`factors` has."""
    return sum(rank * (rows + columns) if columns else rows for _, rows, columns in _matrices(shapes, rank))


def _matrices(shapes: Sequence[Shape], rank: int) -> Iterator[tuple[slice, int, int]]:
    """Every tensor's place, rows and columns; of one that is sent whole the number of entries and no columns."""
    start = 0
    for shape in shapes:
        size = math.prod(shape)
        rows = shape[0] if shape else 1
        columns = size // rows if rows else 0
        smaller = rank * (rows + columns) < size
        yield slice(start, start + size), rows if smaller else size, columns if smaller else 0
        start += size
