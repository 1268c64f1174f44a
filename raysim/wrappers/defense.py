"""The rule of the section ``defense`` on the updates of one round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregators import robust
from aggregators.gram import Doubles, gram_matrix, squared_lengths
from aggregators.means import sample_weights, weighted_sum
from aggregators.sorted_coordinates import coordinate_median, trimmed_mean
from raysim import seeds
from raysim.config.wrappers import Defense
from raysim.method import Context, Updates, Vector


def robust_mean(defense: Defense, updates: Updates, context: Context) -> Vector:
    """What takes the place of ``updates.mean()``, float32 [d].

    It acts on all that is shared, BatchNorm's statistics too. f = ⌊byzantine · n⌋ of the n updates that arrived. One
    that holds nan or inf is left out and counts among the f; if all do, so does the result.
    """
    byzantine = int(defense.byzantine * len(updates.clients) + 1e-9)  # 0.29 * 100 is a little less than 29
    finite = np.isfinite(squared_lengths(updates.deltas))
    if not finite.any():
        return weighted_sum(updates.deltas, sample_weights(updates.samples).tolist())
    vectors = [vector for vector, kept in zip(updates.deltas, finite, strict=True) if kept]
    count = len(vectors)
    byzantine = max(byzantine - (len(finite) - count), 0)
    gram = _gram(defense, vectors)
    mixing: Doubles | None = None
    if defense.before == "mixing":
        mixing = robust.nearest_neighbor_mixing(gram, byzantine)
    elif defense.before == "bucketing":
        draws = seeds.numpy_generator(context.seed, "defense buckets", context.round)
        mixing = robust.bucketing(count, defense.bucket_size, draws)
    if defense.rule == "median":
        return coordinate_median(vectors, mixing)
    if defense.rule == "trimmed-mean":
        return trimmed_mean(vectors, byzantine, mixing)
    own = gram if mixing is None else robust.mixed_gram(gram, mixing)
    if defense.rule == "norm-bound":
        coefficients = sample_weights(updates.samples[finite]) @ robust.norm_bound(own, defense.radius)
    elif defense.rule == "krum":
        coefficients = robust.krum(own, byzantine)
    elif defense.rule == "multi-krum":
        coefficients = robust.multi_krum(own, byzantine)
    elif defense.rule == "geometric-median":
        coefficients = robust.geometric_median(own, defense.smoothing, defense.iterations)
    else:
        coefficients = robust.centered_clipping(own, defense.radius, defense.iterations)
    if mixing is not None:
        coefficients = coefficients @ mixing
    return weighted_sum(vectors, coefficients.tolist())


def _gram(defense: Defense, vectors: Sequence[Vector]) -> Doubles:
    """As much of the Gram matrix as the rule reads: all of it, the diagonal, or nothing."""
    if defense.before != "mixing" and defense.rule in ("median", "trimmed-mean"):
        return np.zeros((len(vectors), len(vectors)))
    one_step = defense.rule == "centered-clipping" and defense.iterations == 1
    if defense.before == "none" and (one_step or defense.rule == "norm-bound"):
        return np.diag(squared_lengths(vectors))
    return gram_matrix(vectors)
