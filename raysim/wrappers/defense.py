"""The rule of the section ``defense`` on the updates of one round, and what rules ask of their number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from raysim import seeds
from raysim.aggregators import robust
from raysim.aggregators.gram import Doubles, combine, gram_matrix, piece_grams, squared_lengths
from raysim.aggregators.means import sample_weights, weighted_sum
from raysim.aggregators.principal_gradients import principal_coefficients
from raysim.aggregators.sorted_coordinates import coordinate_median, trimmed_mean
from raysim.config.wrappers import Defense
from raysim.errors import ConfigError
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
    if defense.rule == "principal":
        return principal_step(vectors, defense.axes, updates.samples[finite], context.shared_parameter_count)
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


def principal_step(vectors: Sequence[Vector], axes: float, samples: NDArray[np.int64], parameters: int) -> Vector:
    """FedLD's step of all clients with equal weights, statistics of BatchNorm by samples, float32 [d].

    Source: Zeng et al. 2024, Eq. 4-7 as printed (aggregators/principal_gradients.py): no robust rule, as a client keeps
    the length of its update.

    Args:
        vectors: n updates [d].
        axes: share of the n axes that are kept.
        samples: m_i [n].
        parameters: how many leading entries are parameters.
    """
    count = len(vectors)
    (gram,) = piece_grams(vectors, [0, parameters])
    coefficients = principal_coefficients(gram, axes, "keep", np.full(count, 1 / count)).tolist()
    return combine(vectors, [0, parameters, vectors[0].size], [coefficients, sample_weights(samples).tolist()])


def check_krum(defense: Defense, steps: Sequence[int]) -> None:
    """ConfigError for Krum outside its condition n > 2f + 2, in a planned server step of n updates.

    Source: Blanchard et al. 2017, section 4, Proposition 1: below it a majority of the nearest may be malicious.
    """
    if defense.rule not in ("krum", "multi-krum"):
        return
    for count in steps:
        byzantine = int(defense.byzantine * count + 1e-9)
        given = -(-count // defense.bucket_size) if defense.before == "bucketing" else count
        if given <= 2 * byzantine + 2:
            what = "updates" if given == count else "buckets"
            raise ConfigError(
                f"defense.rule: {defense.rule} needs n > 2f + 2 {what}, and a server step has n = {given} of which "
                f"f = {byzantine} may be anything. Lower defense.byzantine, let more clients take part, or set "
                "defense.rule to median or trimmed-mean."
            )


def _gram(defense: Defense, vectors: Sequence[Vector]) -> Doubles:
    """As much of the Gram matrix as the rule reads: all of it, the diagonal, or nothing."""
    if defense.before != "mixing" and defense.rule in ("median", "trimmed-mean"):
        return np.zeros((len(vectors), len(vectors)))
    one_step = defense.rule == "centered-clipping" and defense.iterations == 1
    if defense.before == "none" and (one_step or defense.rule == "norm-bound"):
        return np.diag(squared_lengths(vectors))
    return gram_matrix(vectors)
