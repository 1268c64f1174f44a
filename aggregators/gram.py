"""Gram matrices and piecewise linear combinations of flat update vectors, without a copy of the updates.

An aggregation whose result is a linear combination of the updates needs no more than these two: n × n algebra on the
Gram matrix finds the coefficients, one weighted sum makes the result. Cost n²d + nd, extra memory of the order of d.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from raysim.aggregators.means import check_vectors, weighted_sum

Vectors = Sequence[NDArray[np.float32]]
Doubles = NDArray[np.float64]
"""Float64 array of any shape: Gram matrices [n, n], coefficients and weights [n]."""

# n × CHUNK float32 are copied side by side at a time: 1.6 MB for 50 clients. A constant, since it orders the sums.
CHUNK = 8192


@cache
def _thread_pools() -> Any:
    return threadpoolctl.ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Everything of BLAS and LAPACK in here runs on one thread, so that no sum depends on the caller's number."""
    # The search for thread pools takes milliseconds, and layers come by the hundred: NumPy's is loaded, that is enough.
    limited: AbstractContextManager[Any] = _thread_pools().limit(limits=1, user_api="blas")
    return limited


def gram_matrix(vectors: Vectors, start: int = 0, stop: int | None = None) -> Doubles:
    """⟨v_i, v_j⟩ over the entries start to stop (exclusive; the end by default), float64 [n, n], exactly symmetric.

    Args:
        vectors: n vectors float32 [d]; they are only read, a chunk at a time.

    Sums within a chunk of 8192 entries are in float32, which halves the time, and chunks are added up in float64: the
    error is that of one chunk, about 1e-7 of ‖v_i‖ ‖v_j‖ and less over many. (Updates are float32 differences of
    parameters, which are further off than that.) If squares overflow float32, all of it is done in float64.
    It runs on one BLAS thread, so that the caller's number of threads cannot change a bit; other kinds of processors
    (other BLAS kernels) may differ in the last ones.

    Raises:
        ValueError: no vectors, or vectors that are not float32 of one common length.
    """
    check_vectors(vectors)
    end = vectors[0].size if stop is None else stop
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        gram = _gram(vectors, start, end, np.dtype(np.float32))
        return gram if np.isfinite(gram).all() else _gram(vectors, start, end, np.dtype(np.float64))


def _gram(vectors: Vectors, start: int, end: int, precision: np.dtype[Any]) -> Doubles:
    count = len(vectors)
    gram = np.zeros((count, count), np.float64)
    buffer = np.empty((count, min(CHUNK, max(end - start, 0))), precision)
    for low in range(start, end, CHUNK):
        high = min(low + CHUNK, end)
        chunk = buffer[:, : high - low]
        for row, vector in zip(chunk, vectors, strict=True):
            row[:] = vector[low:high]
        gram += chunk @ chunk.T  # NumPy sees the transpose of the same array and calls syrk: half the work
    return gram


def squared_lengths(vectors: Vectors) -> Doubles:
    """‖v_i‖², float64 [n]: the diagonal of :func:`gram_matrix`, and as exact, in a fifth of its time for 50 vectors.

    Raises:
        ValueError: as :func:`gram_matrix`.
    """
    check_vectors(vectors)
    with one_blas_thread(), np.errstate(over="ignore"):
        lengths = _lengths(vectors, np.dtype(np.float32))
        return lengths if np.isfinite(lengths).all() else _lengths(vectors, np.dtype(np.float64))


def _lengths(vectors: Vectors, precision: np.dtype[Any]) -> Doubles:
    lengths = np.zeros(len(vectors))
    for low in range(0, vectors[0].size, CHUNK):
        pieces = [vector[low : low + CHUNK].astype(precision, copy=False) for vector in vectors]
        lengths += [piece @ piece for piece in pieces]
    return lengths


def piece_grams(vectors: Vectors, boundaries: Sequence[int]) -> list[Doubles]:
    """:func:`gram_matrix` of each piece of the vectors, as :func:`combine` cuts them."""
    return [gram_matrix(vectors, *piece) for piece in pairwise(boundaries)]


def mean_cosine(gram: Doubles) -> float:
    """Mean over all pairs of ⟨v_i, v_j⟩ / (‖v_i‖ ‖v_j‖); a zero vector has cosine 0, one vector alone nan."""
    count = len(gram)
    if count < 2:
        return float("nan")
    lengths = np.sqrt(np.diag(gram))
    products = np.outer(lengths, lengths)
    cosines = np.divide(gram, products, out=np.zeros_like(gram), where=products > 0)
    return float(np.triu(cosines, 1).sum() / (count * (count - 1) / 2))


def eigenvalue_shares(gram: Doubles) -> Doubles:
    """λ_k / Σλ of the Gram matrix, descending [n]; nan where all vectors are zero."""
    with one_blas_thread():
        values = np.linalg.eigvalsh(gram)[::-1]
    return np.asarray(values / values.sum() if values.sum() > 0 else np.full(len(gram), np.nan))


def step_shares(grams: Sequence[Doubles], coefficients: Sequence[Doubles]) -> Doubles:
    """⟨s_i, s⟩ / ‖s‖² [n], s = Σ_i s_i the step and s_i what vector i adds to it (:func:`combine`): they sum to one.

    Args:
        grams: of each piece.
        coefficients: n numbers for each piece.
    """
    along = np.sum([c * (gram @ c) for gram, c in zip(grams, coefficients, strict=True)], axis=0)
    return np.asarray(along / along.sum() if along.sum() > 0 else np.full(len(along), np.nan))


def combine(
    vectors: Vectors, boundaries: Sequence[int], coefficients: Sequence[Sequence[float]]
) -> NDArray[np.float32]:
    """Σ_k coefficients[t][k] · vectors[k] on each piece t, as one new vector float32 [d].

    Args:
        boundaries: T + 1 ascending positions from 0 to d; piece t holds the entries boundaries[t] to boundaries[t + 1].
        coefficients: n numbers for each of the T pieces.

    Raises:
        ValueError: boundaries that do not span the vectors, or coefficients that do not fit.
    """
    check_vectors(vectors)
    if boundaries[0] != 0 or boundaries[-1] != vectors[0].size or len(coefficients) != len(boundaries) - 1:
        raise ValueError(
            f"{len(coefficients)} sets of coefficients for boundaries from {boundaries[0]} to {boundaries[-1]}; "
            f"expected one a piece, over 0 to {vectors[0].size}"
        )
    result = np.empty_like(vectors[0])
    for (low, high), factors in zip(pairwise(boundaries), coefficients, strict=True):
        result[low:high] = weighted_sum([vector[low:high] for vector in vectors], factors)
    return result
