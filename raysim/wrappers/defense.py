"""The section ``defense``: its rule on the updates of one round; what a rule does is in its file in ``rules/``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from raysim import seeds
from raysim.aggregators import robust
from raysim.aggregators.gram import Doubles, squared_lengths
from raysim.aggregators.means import sample_weights, weighted_sum
from raysim.config.kind_files import kind_object
from raysim.config.wrappers import Defense
from raysim.errors import ConfigError
from raysim.method import Context, Updates, Vector
from raysim.units import counted
from raysim.wrappers.rules._rule import Rule, Step


def rule_of(defense: Defense) -> Rule:
    """The rule of a section that has one."""
    found: Rule = kind_object("wrappers.rules", defense.rule, defense)
    return found


def robust_mean(defense: Defense, updates: Updates, context: Context) -> Vector:
    """A robust mean in the place of ``updates.mean()``, float32 [d].

    It acts on all that is shared, BatchNorm's statistics too. f = ⌊byzantine · n⌋ of the n updates that arrived. One
    that holds nan or inf is left out and counts among the f; if all do, so does the result.
    """
    byzantine = byzantine_updates(defense, len(updates.clients))
    finite = np.isfinite(squared_lengths(updates.deltas))
    if not finite.any():
        return weighted_sum(updates.deltas, sample_weights(updates.samples).tolist())
    vectors = [vector for vector, kept in zip(updates.deltas, finite, strict=True) if kept]
    byzantine = max(byzantine - (len(finite) - len(vectors)), 0)
    step = Step(vectors, updates.samples[finite], byzantine, context.shared_parameter_count)
    step.mixing = _mixing(defense, step, context)
    return rule_of(defense).mean(step)


def byzantine_updates(defense: Defense, updates: int) -> int:
    """How many updates of a step may be anything: f = ⌊byzantine · n⌋."""
    return int(defense.byzantine * updates + 1e-9)  # 0.29 * 100 is a little less than 29


def check_defense(defense: Defense, steps: Sequence[int]) -> None:
    """ConfigError if the rule does not hold for a planned server step of one of these numbers of updates, ascending."""
    if defense.on:
        for updates in steps:
            rule_of(defense).check(defense, updates)
        _check_largest(defense, steps[-1])


def _check_largest(defense: Defense, updates: int) -> None:
    """ConfigError for a rule that is the mean of even the largest step, and so no defense.

    With late joiners, say, smaller steps may be means.
    """
    is_mean = defense.rule in ("trimmed-mean", "multi-krum") or defense.before == "mixing"
    if is_mean and defense.byzantine and not byzantine_updates(defense, updates):
        least = math.ceil(1000 / updates) / 1000
        possible = least < 0.5 and not (defense.rule == "multi-krum" and updates <= 4)  # which needs n > 2f + 2
        advice = f"Set it to {least:g} or more (0: on purpose), or let" if possible else "Let"
        raise ConfigError(
            f"defense.byzantine: {defense.byzantine:g} of the {counted(updates, 'update')} of a server step, rounded "
            f"down, is none, so that the rule is the mean and no defense. {advice} more clients take part."
        )
    buckets = -(-updates // defense.bucket_size)
    whole = defense.before == "bucketing" and defense.rule in ("median", "trimmed-mean")
    if whole and updates > 2 and buckets < 3:
        raise ConfigError(
            f"defense.bucket_size: {defense.bucket_size} makes {counted(buckets, 'bucket')} of "
            f"{counted(updates, 'update')} of a server step, of which {defense.rule} takes the mean. Allowed: at most "
            f"{(updates - 1) // 2}, for three buckets."
        )


def _mixing(defense: Defense, step: Step, context: Context) -> Doubles | None:
    """The weights of the step before the rule; None without one."""
    if defense.before == "mixing":
        return robust.nearest_neighbor_mixing(step.gram, step.byzantine)
    if defense.before == "bucketing":
        draws = seeds.numpy_generator(context.seed, "defense buckets", context.round)
        return robust.bucketing(len(step.vectors), defense.bucket_size, draws)
    return None
