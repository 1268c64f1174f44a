"""Steps from 0, the model as it is, each the mean of differences that are cut to a length."""

from __future__ import annotations

from dataclasses import dataclass

from raysim.aggregators import robust
from raysim.method import Vector
from raysim.wrappers.rules._rule import Rule, Step


@dataclass(frozen=True)
class CenteredClipping(Rule):
    """Karimireddy et al. 2021, as in :func:`raysim.aggregators.robust.centered_clipping`."""

    radius: float
    iterations: int

    def mean(self, step: Step) -> Vector:
        """After the last step; a single one reads lengths alone."""
        gram = step.lengths_gram if self.iterations == 1 else step.mixed_gram
        return step.combined(robust.centered_clipping(gram, self.radius, self.iterations))


KIND = CenteredClipping
