"""The mean of every coordinate without its f smallest and f largest values."""

from __future__ import annotations

from dataclasses import dataclass

from raysim.aggregators.sorted_coordinates import trimmed_mean
from raysim.method import Vector
from raysim.wrappers.rules._rule import Rule, Step


@dataclass(frozen=True)
class TrimmedMean(Rule):
    """Coordinate-wise trimmed mean of the updates, or of the mixed ones."""

    def mean(self, step: Step) -> Vector:
        """Coordinate by coordinate."""
        return trimmed_mean(step.vectors, step.byzantine, step.mixing)


KIND = TrimmedMean
