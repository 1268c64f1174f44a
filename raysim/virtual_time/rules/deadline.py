"""Rounds that take at most some virtual seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raysim.errors import ConfigError
from raysim.virtual_time.rules._rule import CutShort, Moment


@dataclass(frozen=True)
class Deadline(CutShort):
    """A round ends ``deadline`` virtual seconds after its cohort was sampled, or earlier with all its clients."""

    when: ClassVar[str] = "after timing.deadline virtual seconds, or when the whole cohort is back"

    deadline: float

    def check(self) -> None:
        """ConfigError without a deadline."""
        if not self.deadline:
            raise ConfigError("timing.deadline: 0 with timing.mode deadline. Set it to the virtual seconds of a round.")

    def check_seconds(self, shortest: float) -> None:
        """ConfigError if every client would be late, and late ones are dropped."""
        if not self.stale and shortest > self.deadline:
            raise ConfigError(
                f"timing.deadline: no client can meet {self.deadline:g} virtual seconds; the fastest takes "
                f"{shortest:.3g}. Raise it, or set timing.late to carry."
            )

    def ends(self, opened: float) -> float:
        """At the deadline."""
        return opened + self.deadline

    def enough(self, now: Moment, opened: float) -> bool:
        """From the deadline on, with every update that arrives at it."""
        return now.time >= self.ends(opened) and not now.more


KIND = Deadline
