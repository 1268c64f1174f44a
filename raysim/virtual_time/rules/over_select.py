"""Rounds that sample more clients than they wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raysim.rounding import rounded_up
from raysim.virtual_time.rules._rule import CutShort, Moment


@dataclass(frozen=True)
class OverSelect(CutShort):
    """A round of ⌈over_select · m⌉ clients ends with its m-th update.

    Source: Bonawitz et al. 2019, Towards federated learning at scale: system design, section 2.2.
    """

    when: ClassVar[str] = "with the first m of timing.over_select · m clients"

    over_select: float

    def begins(self, cohort: int, flying: int) -> int:
        """More than in a usual round, rounded up."""
        return rounded_up(self.over_select, cohort)

    def enough(self, now: Moment, opened: float) -> bool:
        """With the updates of a usual round."""
        return now.of_round >= now.cohort


KIND = OverSelect
