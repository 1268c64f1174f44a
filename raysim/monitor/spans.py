"""The time of a round by use: spans of the driver, jobs of the slots and their parts, and the gaps between these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raysim.exchange.profile_marks import OTHER, TRANSFER, WAIT


@dataclass
class Span:
    """Something that the driver did, from ``start`` to ``stop`` on its clock."""

    name: str
    stage: str
    """The outermost span around it within the round."""
    is_stage: bool
    start: float
    stop: float = float("nan")
    inner: float = 0.0
    """Seconds of it that belong to spans within."""
    parts: int = 0
    """How many spans are right within."""


@dataclass(frozen=True)
class SlotPhase:
    """A phase of a slot: of a job, or between two."""

    phase: str
    slot: int
    stage: str
    """Stage of the job, which ends the phase where it is between two."""
    start: float
    stop: float
    client: int | None = None


@dataclass(frozen=True)
class SlotJob:
    """A job that a slot has done; its parts cover it without a gap."""

    slot: int
    stage: str
    label: str
    sent: float
    start: float
    stop: float
    parts: tuple[SlotPhase, ...]


def gaps(whole: Span, work: Sequence[SlotJob], slots: int) -> list[SlotPhase]:
    """Where slots were not at work: wait until a job has been sent, then transfer until it begins. In order of time."""
    found = []
    for slot in range(slots):
        free = whole.start
        for job in sorted((job for job in work if job.slot == slot), key=lambda job: job.start):
            sent = min(max(free, job.sent), job.start)
            found.append(SlotPhase(WAIT, slot, job.stage, free, sent))
            found.append(SlotPhase(TRANSFER, slot, job.stage, sent, job.start))
            free = job.stop
        found.append(SlotPhase(WAIT, slot, OTHER, free, whole.stop))
    return [gap for gap in found if gap.start < gap.stop]
