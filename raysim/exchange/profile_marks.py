"""The clock of a run's profile, and what a worker notes on it. Imported by every process; imports nothing large."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

OTHER, WAIT, TRANSFER = "other", "wait", "transfer"
"""Phases of a profile that no worker notes: what has no name, a slot without work, and a job on its way to its slot."""
BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Where Linux names a start of the machine; processes that read the same there share one steady counter."""


@dataclass(frozen=True)
class Clock:
    """A reading of the wall clock that all processes of a run on one machine count from."""

    machine: str
    """Name of the machine's start; empty where the system names none."""
    zero: float
    """Seconds since 1970 at which the steady counter was 0."""


def _own_clock() -> Clock:
    machine = ""
    with suppress(OSError):
        machine = BOOT.read_text().strip()
    return Clock(machine, time.time() - time.perf_counter())


_clock = _own_clock()


def clock() -> Clock:
    """The clock of this process, to be sent to those it starts."""
    return _clock


def share_clock(other: Clock) -> None:
    """Count from another process's reading of the wall clock, if it is on this machine; else nothing changes.

    Each would take its own otherwise, and a wall clock that is set between their starts moves them apart.
    """
    global _clock
    if other.machine and other.machine == _clock.machine:
        _clock = other


def now() -> float:
    """Seconds since 1970 that never jump: the wall clock, read once when the run starts, plus a steady counter.

    The driver and the actors of one machine share the reading; those of several machines agree as well as the
    machines' clocks do. Lengths measured within one process are exact.
    """
    return _clock.zero + time.perf_counter()


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
