"""Where a round's time goes: what the driver did at each moment, and what every slot did. It knows no Ray.

A round, from its first line to its checkpoint, is seen twice. The driver's time is cut into stages (train, aggregate,
evaluate, write, checkpoint) and these into phases; a moment belongs to the innermost one, and what no phase names is
"other". A slot's time in each stage is work (load, train, update, sum, evaluate), transfer (a call that was sent and
has not begun, though the slot is free) or wait. Either way the parts add up to the round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from raysim.exchange.pool_protocol import PhaseRecorder
from raysim.exchange.profile_marks import OTHER, TRANSFER, WAIT, now
from raysim.monitor.spans import SlotJob, SlotPhase, Span, gaps

if TYPE_CHECKING:
    from raysim.exchange.pool_protocol import Done, Job
    from raysim.monitor.chrome_trace import Trace
    from raysim.storage.run_folder import RunFolder

DRIVER, SLOTS = "driver", "slots"


class Profile(PhaseRecorder):
    """Puts every round's phases into profile.csv and what happened into trace.json; holds one round in memory.

    Args:
        clock: as :func:`raysim.exchange.profile_marks.now`, which stamps what comes from workers.
    """

    def __init__(self, folder: RunFolder, trace: Trace, clock: Callable[[], float] = now) -> None:
        self._folder, self._trace, self._clock = folder, trace, clock
        self._spans: list[Span] = []
        self._open: list[Span] = []
        self._work: list[SlotJob] = []

    @contextmanager
    def round(self, number: int, slots: int) -> Iterator[None]:
        self._spans, self._open, self._work = [], [], []
        whole = Span(f"round {number}", OTHER, is_stage=True, start=self._clock())
        self._open.append(whole)
        yield
        whole.stop = self._clock()
        self._open.clear()
        seconds = whole.stop - whole.start
        rows = driver_rows(whole, self._spans) + slot_rows(whole, self._spans, self._work, slots)
        self._folder.append_profile([{"round": number, **row, "share": row["seconds"] / seconds} for row in rows])
        self._trace.append(whole, self._spans, self._work, slots)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        inside = len(self._open) > 1
        span = Span(name, self._open[1].name if inside else name, not inside, self._clock())
        self._spans.append(span)
        self._open.append(span)
        try:
            yield
        finally:
            span.stop = self._clock()
            self._open.pop()
            if self._open:
                self._open[-1].inner += span.stop - span.start
                self._open[-1].parts += 1

    def job(self, job: Job, done: Done) -> None:
        stage = self._open[1].name if len(self._open) > 1 else OTHER
        slot, stop = done.seat.slot, done.started + done.seconds
        marks = getattr(done.result, "marks", ())
        # A task without marks is one part, named after its stage.
        phases = [(mark.phase, mark.client) for mark in marks] or [(stage, None)]
        bounds = pairwise([done.started, *(mark.start for mark in marks[1:]), stop])
        parts = [
            SlotPhase(phase, slot, stage, *times, client) for (phase, client), times in zip(phases, bounds, strict=True)
        ]
        self._work.append(SlotJob(slot, stage, job.label, done.sent, done.started, stop, tuple(parts)))


def driver_rows(whole: Span, spans: Sequence[Span]) -> list[dict[str, Any]]:
    """Seconds of the driver by stage and phase, each moment counted in the innermost span around it."""
    found: dict[tuple[str, str], tuple[int, float]] = {}
    for span in [*spans, whole]:
        phase = OTHER if span.is_stage and span.parts else span.name
        times, seconds = found.get((span.stage, phase), (0, 0.0))
        found[span.stage, phase] = times + 1, seconds + span.stop - span.start - span.inner
    return [_row(DRIVER, *key, *value) for key, value in found.items()]


def slot_rows(whole: Span, spans: Sequence[Span], work: Sequence[SlotJob], slots: int) -> list[dict[str, Any]]:
    """Seconds of a slot by stage and phase: the mean over slots.

    What is left of a stage is wait. It is taken from lengths, not from positions in time, so that clocks of machines
    that disagree cannot bend it.
    """
    lengths: dict[str, float] = {}
    for span in spans:
        if span.is_stage:
            lengths[span.stage] = lengths.get(span.stage, 0.0) + span.stop - span.start
    lengths[OTHER] = whole.stop - whole.start - sum(lengths.values())
    found: dict[str, dict[str, tuple[int, float]]] = {stage: {} for stage in lengths}
    moved = [gap for gap in gaps(whole, work, slots) if gap.phase == TRANSFER]
    for part in [*(part for job in work for part in job.parts), *moved]:
        times, seconds = found[part.stage].get(part.phase, (0, 0.0))
        found[part.stage][part.phase] = times + 1, seconds + (part.stop - part.start) / slots
    for stage, phases in found.items():
        phases[WAIT] = 1, lengths[stage] - sum(seconds for _, seconds in phases.values())
    return [_row(SLOTS, stage, phase, *value) for stage, phases in found.items() for phase, value in phases.items()]


def _row(lane: str, stage: str, phase: str, times: int, seconds: float) -> dict[str, Any]:
    return {"lane": lane, "stage": stage, "phase": phase, "times": times, "seconds": seconds}
