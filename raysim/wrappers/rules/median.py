"""The median of every coordinate."""

from __future__ import annotations

from dataclasses import dataclass

from raysim.aggregators.sorted_coordinates import coordinate_median
from raysim.method import Vector
from raysim.wrappers.rules._rule import Rule, Step


@dataclass(frozen=True)
class Median(Rule):
    """Coordinate-wise median of the updates, or of the mixed ones."""

    def mean(self, step: Step) -> Vector:
        """Coordinate by coordinate."""
        return coordinate_median(step.vectors, step.mixing)


KIND = Median
