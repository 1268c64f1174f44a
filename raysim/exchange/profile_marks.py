"""The clock of a run's profile, and what a worker notes on it. Imported by every process; imports nothing large."""

from __future__ import annotations

import time
from dataclasses import dataclass

OTHER, WAIT, TRANSFER = "other", "wait", "transfer"
"""Phases of a profile that no worker notes: what has no name, a slot without work, and a job on its way to its slot."""
_ANCHOR = time.time() - time.perf_counter()


def now() -> float:
    """Seconds since 1970 that never jump: the wall clock, read once when the process starts, plus a steady counter.

    Processes of one machine agree to well under a millisecond, unless its wall clock was set between their starts;
    those of several machines agree as well as the machines' clocks do. Lengths measured within one process are exact.
    """
    return _ANCHOR + time.perf_counter()


@dataclass(frozen=True)
class Mark:
    """Here the worker began a phase; it lasts until the next mark, or to the job's end."""

    phase: str
    start: float
    client: int | None = None
    """None: not for one client in particular."""


class Marks:
    """Time marks that one job notes of itself; ``on`` False notes nothing."""

    def __init__(self, on: bool) -> None:
        self._found: list[Mark] | None = [] if on else None

    def __call__(self, phase: str, client: int | None = None) -> None:
        """A phase begins."""
        if self._found is not None:
            self._found.append(Mark(phase, now(), client))

    def found(self) -> tuple[Mark, ...]:
        """All marks so far."""
        return tuple(self._found or ())
