"""Two factors of every tensor as a matrix.

Source: Vogels et al. 2019, PowerSGD (arXiv 1905.13727), Algorithm 1. A tensor counts as the matrix M of its first axis
and all others; P = M Q from a normal Q [columns, rank] has its columns made orthonormal, then Q = Mᵀ P. What arrives,
P Qᵀ = P Pᵀ M, is a projection of M: never longer than M, and M itself if its rank is ``rank`` or less.

Two departures: every client has factors of its own (the paper's workers average P before it is made orthonormal), and Q
is drawn anew each time, so that nothing is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from raysim.aggregators.gram import one_blas_thread
from raysim.method import Shape, Vector
from raysim.wrappers.codecs._codec import Codec, Payload, entries_of


@dataclass(frozen=True)
class LowRank(Codec):
    """P and Q of every matrix that they are smaller than, all other entries as they are."""

    rank: int
    """r, the number of columns of P and Q."""

    def encode(self, vector: Vector, shapes: Sequence[Shape], seed: int) -> Payload:
        """P (left) and Q (right) by the number of the tensor, or the whole tensor; ``seed`` is of the first Q."""
        draws = np.random.default_rng(seed)
        payload: Payload = {}
        with one_blas_thread():
            for number, (piece, rows, columns) in enumerate(_matrices(shapes, self.rank)):
                if not columns:
                    payload[f"whole {number}"] = vector[piece]
                    continue
                matrix = vector[piece].reshape(rows, columns)
                basis, _ = np.linalg.qr(matrix @ draws.standard_normal((columns, self.rank), np.float32))
                payload[f"left {number}"] = np.ascontiguousarray(basis)
                payload[f"right {number}"] = matrix.T @ basis
        return payload

    def decode(self, payload: Payload, shapes: Sequence[Shape]) -> Vector:
        """P Qᵀ of every matrix that was sent as factors."""
        result: Vector = np.empty(entries_of(shapes), np.float32)
        with one_blas_thread():
            for number, (piece, _, columns) in enumerate(_matrices(shapes, self.rank)):
                if columns:
                    result[piece] = (payload[f"left {number}"] @ payload[f"right {number}"].T).reshape(-1)
                else:
                    result[piece] = payload[f"whole {number}"]
        return result

    def nbytes(self, shapes: Sequence[Shape]) -> int:
        """4 r (rows + columns) for a matrix that is sent as factors, four for each entry of all others."""
        pieces = _matrices(shapes, self.rank)
        return 4 * sum(self.rank * (m + n) if n else piece.stop - piece.start for piece, m, n in pieces)


def _matrices(shapes: Sequence[Shape], rank: int) -> Iterator[tuple[slice, int, int]]:
    """Every tensor's place, rows and columns; no columns where it is sent whole, as its factors are not smaller."""
    start = 0
    for shape in shapes:
        size = math.prod(shape)
        rows = shape[0] if shape else 1
        columns = size // rows if rows else 0
        yield slice(start, start + size), rows, columns if rank * (rows + columns) < size else 0
        start += size


KIND = LowRank
