"""The section ``privacy``: clipped updates, noise on them or on their sum, and an adaptive bound.

All noise comes from the run's seed, so that results are the same for any number of actors: this simulates privacy and
does not protect data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raysim import seeds
from raysim.aggregators.means import weighted_sum
from raysim.config.privacy import Privacy
from raysim.errors import RaysimError
from raysim.method import ClientTask, Context, Update, Updates, Vector
from raysim.wrappers.trained_entries import without_frozen

SMALLEST, LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
"""Between these a number is a float32 in full precision."""
LARGEST_EXPONENT = 700.0
"""The largest exponent of the factor by which a bound grows in a round: e to it is a float64."""
CUT = "clipped"
"""Column of the clients table: 1 for an update that was longer than the bound."""


@dataclass(frozen=True)
class PrivateServer:
    """The server's state where the bound is adaptive."""

    method: Any
    """The method's own."""
    bound: float
    """L2 bound of the next round's updates."""


def private_round(
    privacy: Privacy, noise: float, bound: float, updates: Updates, context: Context
) -> tuple[Vector, float]:
    """A mean with central noise in the place of ``updates.mean()``, float32 [d], and the next round's bound.

    Raises:
        RaysimError: the adaptive bound has become too small or too large for float32: updates and noise would be 0.
    """
    if not SMALLEST <= bound <= LARGEST:
        raise RaysimError(
            f"round {context.round}: the adaptive clipping bound is {bound:.3g}, which is none for float32; noise on "
            "the count moves it. Lower privacy.clip_rate or privacy.noise_multiplier, or raise schedule.sampling_rate."
        )
    cohort = context.cohort.planned
    entries = sum(math.prod(tensor.shape) for tensor in context.tensors)
    deltas = updates.deltas or [np.zeros(entries, np.float32)]
    if privacy.clip_quantile is None:
        mean = noised_mean(deltas, noise * bound, cohort, context.seed, context.round)
        return without_frozen(mean, context.tensors), bound
    of_sum, of_count = shared_noise(noise, cohort)
    context.report.round("clip_bound", bound)
    mean = noised_mean(deltas, of_sum * bound, cohort, context.seed, context.round)
    whole = whole_updates(updates.metric(CUT).tolist(), of_count, context.seed, context.round)
    return without_frozen(mean, context.tensors), next_bound(privacy, bound, whole, cohort)


def clipped(vector: Vector, bound: float) -> tuple[Vector, bool]:
    """v · min(1, C / ‖v‖) [d], and whether that made it shorter."""
    length = math.sqrt(float(np.square(vector, dtype=np.float64).sum()))
    if length <= bound:
        return vector, False
    return vector * np.float32(bound / length), True  # of NaN it is NaN, which the engine tells of its client


def gaussian_noise(entries: int, deviation: float, seed: int, round: int, client: int = 0) -> Vector:
    """Normal noise [d] of a client's update, or of the round's sum."""
    draws = seeds.numpy_generator(seed, "privacy noise", round, client)
    return draws.standard_normal(entries, np.float32) * np.float32(deviation)


def noised_mean(updates: Sequence[Vector], deviation: float, cohort: float, seed: int, round: int) -> Vector:
    """(Σ Δ_i + N(0, deviation²)) / cohort [d].

    All clients count the same: weighted by samples, a client could move the sum by more than the bound. The divisor is
    the planned number of clients (q · N of Poisson cohorts), also where some failed: the number that arrived is not
    public, and a divisor that one client more or less changes would move the mean by more than C over it.
    """
    total = weighted_sum(updates, [1.0] * len(updates))
    total += gaussian_noise(total.size, deviation, seed, round)
    return total / np.float32(cohort)


def shared_noise(noise: float, cohort: float) -> tuple[float, float]:
    """The noise on the sum, as a multiple of the bound, and the deviation of that on the count of whole updates.

    Both queries together cost what one with ``noise`` does: z_Δ = (z⁻² − (2 σ_b)⁻²)^−½ (Andrew et al. 2021, Theorem
    1). σ_b is a twentieth of the cohort as in the paper; in small cohorts, decided here, at least z.
    """
    if noise == 0:
        return 0.0, 0.0
    of_count = max(noise, cohort / 20)
    return (noise**-2 - (2 * of_count) ** -2) ** -0.5, of_count


def next_bound(privacy: Privacy, bound: float, whole: float, cohort: float) -> float:
    """C · exp(−η (b̃ − γ)), b̃ = ½ + Σ(b_i − ½) / cohort (Andrew et al. 2021, Algorithm 1).

    Args:
        whole: Σ(b_i − ½) with its noise, b_i being 1 for an update that was not cut.
    """
    assert privacy.clip_quantile is not None
    share = 0.5 + whole / cohort
    return bound * math.exp(min(-privacy.clip_rate * (share - privacy.clip_quantile), LARGEST_EXPONENT))


def whole_updates(cut: Sequence[float], deviation: float, seed: int, round: int) -> float:
    """Σ(b_i − ½) + N(0, deviation²) over the updates that arrived, from whether each was cut."""
    draws = seeds.numpy_generator(seed, "privacy count", round)
    return float(sum(0.5 - float(each) for each in cut) + deviation * draws.standard_normal())


def check_steps(update: Update, samples: int, task: ClientTask) -> None:
    """RuntimeError for a client task that did not take the steps of DP-SGD that are counted for it."""
    from raysim.training.private_gradient import poisson_sampling  # late: torch, which starts slowly

    _, steps = poisson_sampling(samples, task.training)
    taken = update.metrics.get("steps")
    if taken != task.local_epochs * steps:
        raise RuntimeError(
            f"the method declares Traits(plain_training=True), but reports {taken} steps of local training instead of "
            f"{task.local_epochs * steps}, so that ε would be wrong; leave the trait out, or train in one call of "
            "train_epochs and report its metrics()"
        )
