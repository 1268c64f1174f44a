"""Robust rules as linear combinations of the updates: coefficients [n] from their Gram matrix [n, n].

However long the updates are, choosing and weighting them is n × n algebra (aggregators/gram.py), and one weighted sum
makes the result. A step before a rule (:func:`nearest_neighbor_mixing`, :func:`bucketing`, :func:`norm_bound`) is a
matrix of weights W [m, n]: the Gram matrix of the m mixed updates is W G Wᵀ, and coefficients c of these are Wᵀ c of
the updates. Rules for each coordinate by itself are in aggregators/sorted_coordinates.py.

``byzantine`` is f, the number of vectors that may be anything. Distances come from the Gram matrix, whose error is
about 1e-7 ‖v_i‖ ‖v_j‖: vectors that differ by less than that of their lengths count as equal.
"""

from __future__ import annotations

import numpy as np

from raysim.aggregators.gram import Doubles, one_blas_thread


def squared_distances(gram: Doubles) -> Doubles:
    """‖v_i − v_j‖² [n, n], without negative values by rounding."""
    lengths = np.diag(gram)
    distances = np.maximum(lengths[:, None] + lengths[None, :] - 2 * gram, 0)
    np.fill_diagonal(distances, 0)
    return np.asarray(distances)


def check_byzantine(count: int, byzantine: int) -> None:
    """ValueError unless fewer than half of ``count`` vectors are Byzantine, which no rule could outvote."""
    if not 0 <= 2 * byzantine < count:
        raise ValueError(f"{byzantine} Byzantine of {count} vectors: at most {(count - 1) // 2} can be outvoted")


def krum_scores(gram: Doubles, byzantine: int) -> Doubles:
    """The mean squared distance of each vector to the n − f − 1 nearest others [n].

    Source: Blanchard et al. 2017, Machine learning with adversaries (NeurIPS), section 4, which takes n − f − 2; one
    more, as in ByzFL, since n − f − 1 others are honest.
    """
    check_byzantine(len(gram), byzantine)
    nearest = np.sort(squared_distances(gram), axis=1)[:, 1 : len(gram) - byzantine]
    return np.asarray(nearest.mean(axis=1) if nearest.shape[1] else np.zeros(len(gram)))


def krum(gram: Doubles, byzantine: int, kept: int = 1) -> Doubles:
    """Krum: equal weights for the ``kept`` vectors with the lowest scores, of equal scores the first."""
    weights = np.zeros(len(gram))
    weights[np.argsort(krum_scores(gram, byzantine), kind="stable")[:kept]] = 1 / kept
    return weights


def multi_krum(gram: Doubles, byzantine: int) -> Doubles:
    """Multi-Krum: the mean of the n − f vectors with the lowest scores."""
    return krum(gram, byzantine, len(gram) - byzantine)


def geometric_median(gram: Doubles, smoothing: float = 0.1, iterations: int = 3) -> Doubles:
    """The geometric median argmin_z Σ_i ‖v_i − z‖, by the smoothed Weiszfeld algorithm from z = 0.

    Source: Pillutla et al. 2022, Robust aggregation for federated learning (IEEE TSP; arXiv 1912.13445), Algorithm 2:
    z ← Σ_i β_i v_i / Σ_i β_i with β_i = 1 / max(ν, ‖v_i − z‖).

    Args:
        smoothing: ν > 0.
    """
    weights = np.zeros(len(gram))
    for _ in range(iterations):
        weights = 1 / np.maximum(smoothing, _distances_to(gram, weights))
        weights /= weights.sum()
    return weights


def centered_clipping(gram: Doubles, radius: float, iterations: int = 1) -> Doubles:
    """Centered clipping from v = 0: v ← v + (1/n) Σ_i (v_i − v) min(1, τ / ‖v_i − v‖).

    Source: Karimireddy et al. 2021, Learning from history for Byzantine robust optimization (ICML; arXiv 2012.10333),
    Algorithm 2. It starts from 0, the global model as it is, not from the last round's result: nothing is kept. A
    single iteration reads the diagonal alone.
    """
    count = len(gram)
    weights = np.zeros(count)
    for _ in range(iterations):
        shares = _clip_factors(_distances_to(gram, weights), radius) / count
        weights = weights * (1 - shares.sum()) + shares
    return weights


def norm_bound(gram: Doubles, bound: float) -> Doubles:
    """The diagonal matrix [n, n] that shortens vectors longer than ``bound`` to that length.

    It reads the diagonal of ``gram`` alone.

    Source: Sun et al. 2019, Can you really backdoor federated learning? (arXiv 1911.07963), section 4.
    """
    return np.diag(_clip_factors(np.sqrt(np.diag(gram)), bound))


def nearest_neighbor_mixing(gram: Doubles, byzantine: int) -> Doubles:
    """Weights [n, n] that replace each vector by the mean of the n − f nearest to it, itself among them.

    Source: Allouah et al. 2023, Fixing by mixing (AISTATS; arXiv 2302.01772), Algorithm 1.
    """
    count = len(gram)
    check_byzantine(count, byzantine)
    nearest = np.argsort(squared_distances(gram), axis=1, kind="stable")[:, : count - byzantine]
    weights = np.zeros((count, count))
    np.put_along_axis(weights, nearest, 1 / (count - byzantine), axis=1)
    return weights


def bucketing(count: int, size: int, generator: np.random.Generator) -> Doubles:
    """Weights [⌈n / s⌉, n] of the means of buckets of s vectors in random order; the last may hold fewer.

    Source: Karimireddy et al. 2022, Byzantine-robust learning on heterogeneous datasets via bucketing (ICLR; arXiv
    2006.09365), Algorithm 1. Of f Byzantine vectors at most f buckets are.
    """
    order = generator.permutation(count)
    weights = np.zeros((-(-count // size), count))
    for row, start in zip(weights, range(0, count, size), strict=True):
        bucket = order[start : start + size]
        row[bucket] = 1 / len(bucket)
    return weights


def mixed_gram(gram: Doubles, mixing: Doubles) -> Doubles:
    """W G Wᵀ [m, m], the Gram matrix of the mixed vectors."""
    with one_blas_thread():
        return np.asarray(mixing @ gram @ mixing.T)


def _distances_to(gram: Doubles, weights: Doubles) -> Doubles:
    """‖v_i − Σ_j w_j v_j‖ [n]."""
    products = gram @ weights
    return np.asarray(np.sqrt(np.maximum(np.diag(gram) - 2 * products + weights @ products, 0)))


def _clip_factors(lengths: Doubles, bound: float) -> Doubles:
    """min(1, bound / length) [n]."""
    return np.asarray(np.divide(bound, lengths, out=np.ones_like(lengths), where=lengths > bound))
