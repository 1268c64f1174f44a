"""The mean by samples of updates that are cut to a length."""

from __future__ import annotations

from dataclasses import dataclass

from raysim.aggregators import robust
from raysim.aggregators.means import sample_weights
from raysim.method import Vector
from raysim.wrappers.rules._rule import Rule, Step


@dataclass(frozen=True)
class NormBound(Rule):
    """Sun et al. 2019, as in :func:`raysim.aggregators.robust.norm_bound`; it goes with no step before it."""

    radius: float

    def mean(self, step: Step) -> Vector:
        """Weights by samples, unlike all other rules."""
        return step.combined(sample_weights(step.samples) @ robust.norm_bound(step.lengths_gram, self.radius))


KIND = NormBound
