"""Rounds that wait for a share of their cohort."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from raysim.virtual_time.rules._rule import CutShort, Moment


@dataclass(frozen=True)
class Quorum(CutShort):
    """A round ends with the ⌈quorum · m⌉-th update of its m clients."""

    when: ClassVar[str] = "once timing.quorum of the cohort is back"

    quorum: float

    def enough(self, now: Moment, opened: float) -> bool:
        """With the share that is asked for."""
        return now.of_round >= self.updates(now.cohort)

    def updates(self, cohort: int) -> int:
        """The share, rounded up."""
        return math.ceil(self.quorum * cohort - 1e-9)  # 0.55 · 100 is 55, and not 56


KIND = Quorum
