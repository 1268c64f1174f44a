"""When a call has taken so long that the actor that holds it must be frozen."""

from __future__ import annotations

from raysim.engine.backend import Job

TIMES = 20.0
"""Without a deadline of the user's: so many times as long as the slowest call of its kind, for its cost."""
LEAST = 300.0
"""And at least so many seconds: what a moment of swapping or of an overloaded disk takes is no fault."""


class Deadline:
    """How long calls may take.

    Args:
        seconds: any call; 0: judged by the calls of the same kind that came back, and no limit before the first did.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._slowest: dict[type, float] = {}

    def learn(self, job: Job, seconds: float) -> None:
        """A job took so long."""
        kind, pace = type(job.task), seconds / max(job.cost, 1.0)
        if pace > self._slowest.get(kind, 0.0):
            self._slowest[kind] = pace

    def of(self, job: Job) -> float:
        """Seconds; infinity if there is no limit."""
        if self._seconds:
            return self._seconds
        pace = self._slowest.get(type(job.task))
        return float("inf") if pace is None else max(LEAST, TIMES * pace * max(job.cost, 1.0))
