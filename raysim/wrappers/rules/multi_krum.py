"""The mean of the n − f updates with the lowest scores of Krum."""

from __future__ import annotations

from dataclasses import dataclass

from raysim.aggregators import robust
from raysim.method import Vector
from raysim.wrappers.rules._rule import Step
from raysim.wrappers.rules.krum import Krum


@dataclass(frozen=True)
class MultiKrum(Krum):
    """Krum's scores and Krum's condition."""

    def mean(self, step: Step) -> Vector:
        """Equal weights for those that are kept."""
        return step.combined(robust.multi_krum(step.mixed_gram, step.byzantine))


KIND = MultiKrum
