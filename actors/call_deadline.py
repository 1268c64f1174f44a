"""When a call has taken so long that the actor that holds it must be frozen."""

from __future__ import annotations

from raysim.engine.backend import Job

TIMES = 20.0
"""Default deadline, as a multiple of the time of the slowest call of the same kind and cost."""
LEAST = 300.0
"""Least default deadline in seconds: a moment of swapping or of an overloaded disk is no fault."""


class Deadline:
    """Deadlines of remote calls, learned from the calls that came back.

    Args:
        seconds: any call; 0: judged by the calls of the same kind that came back, and no limit before the first did.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._slowest: dict[type, float] = {}

    def learn(self, job: Job, seconds: float) -> None:
        """Learn from the time that a job took."""
        kind, pace = type(job.task), seconds / max(job.cost, 1.0)
        if pace > self._slowest.get(kind, 0.0):
            self._slowest[kind] = pace

    def of(self, job: Job) -> float:
        """Deadline of a job in seconds; infinity if there is no limit."""
        if self._seconds:
            return self._seconds
        pace = self._slowest.get(type(job.task))
        return float("inf") if pace is None else max(LEAST, TIMES * pace * max(job.cost, 1.0))
