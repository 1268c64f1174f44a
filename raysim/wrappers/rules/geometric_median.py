"""The point with the least sum of distances to all updates, by smoothed Weiszfeld steps from 0."""

from __future__ import annotations

from dataclasses import dataclass

from raysim.aggregators import robust
from raysim.method import Vector
from raysim.wrappers.rules._rule import Rule, Step


@dataclass(frozen=True)
class GeometricMedian(Rule):
    """Pillutla et al. 2022, as in :func:`raysim.aggregators.robust.geometric_median`."""

    smoothing: float
    iterations: int

    def mean(self, step: Step) -> Vector:
        """After the last step."""
        return step.combined(robust.geometric_median(step.mixed_gram, self.smoothing, self.iterations))


KIND = GeometricMedian
