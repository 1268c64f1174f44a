"""Rounds that wait for a share of their cohort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raysim.rounding import rounded_up
from raysim.virtual_time.rules._rule import CutShort, Moment


@dataclass(frozen=True)
class Quorum(CutShort):
    """A round ends with the ⌈quorum · m⌉-th update of its m clients."""

    when: ClassVar[str] = "once timing.quorum of the cohort is back"

    quorum: float

    def enough(self, now: Moment, opened: float) -> bool:
        """With the share of the clients that were sampled, which may be fewer than in a usual round."""
        return now.of_round >= self.updates(now.sampled)

    def updates(self, cohort: int) -> int:
        """The share, rounded up."""
        return rounded_up(self.quorum, cohort)


KIND = Quorum
