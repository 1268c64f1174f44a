"""The jobs of one round on their way through the Ray pool: which wait, which are sent, how often each was lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from actors.slots import Slot
from raysim.engine.backend import Job
from raysim.engine.timing import now


@dataclass(frozen=True)
class Call:
    """A job that was sent, which slot works on it, references of the states it returns, and when it was sent."""

    index: int
    slot: Slot
    outputs: tuple[Any, ...]
    time: float


WINDOW = 32
"""Number of jobs in front among which one is looked for whose data the slot has already."""
ALIKE = 0.8
"""A job may go before the longest one if it has at least this share of its cost."""


class Work:
    """The jobs of one round, sent longest first.

    Args:
        homes: the place that last served each client that a job was about; kept up to date here.
    """

    def __init__(self, jobs: Sequence[Job], homes: dict[int, int]) -> None:
        self.jobs, self._homes = jobs, homes
        self.waiting = deque(sorted(range(len(jobs)), key=lambda index: (-jobs[index].cost, index)))
        self.sent: dict[Any, Call] = {}
        """Reference of a result → its call."""
        self.sends = [1] * len(jobs)
        self.deaths = [0] * len(jobs)
        """How many actors each job took with it."""
        self.unfinished = sum(job.cost for job in jobs)
        """Cost of all that waits or is sent."""

    @property
    def left(self) -> bool:
        """Whether a job is still waiting or on its way."""
        return bool(self.waiting or self.sent)

    def next_for(self, slot: Slot) -> int:
        """Choose the waiting job that a slot gets.

        Of the longest ones it is one whose clients the slot served before, so that no worker has to hold all clients'
        data; else one that is nobody's; else the very longest.
        """
        front = [self.waiting[place] for place in range(min(WINDOW, len(self.waiting)))]
        longest = self.jobs[front[0]].cost
        alike = [index for index in front if self.jobs[index].cost >= ALIKE * longest]
        homes = [self._homes.get(about) if (about := self.jobs[index].about) is not None else None for index in alike]
        return next((alike[homes.index(home)] for home in (slot.place, None) if home in homes), front[0])

    def send(self, index: int, slot: Slot) -> None:
        """Mark a waiting job as sent to a slot."""
        self.waiting.remove(index)
        job, time = self.jobs[index], now()
        if job.about is not None:
            self._homes[job.about] = slot.place
        options = slot.actor.run.options(name=job.name, num_returns=1 + job.outputs)
        reply = options.remote(job.task, *job.inputs)
        reference, outputs = (reply[0], tuple(reply[1:])) if job.outputs else (reply, ())
        self.sent[reference] = Call(index, slot, outputs, time)
        if not slot.jobs:
            slot.begun = time
        slot.jobs.append(index)

    def finished(self, reference: Any) -> Call:
        """Remove a call that has ended from its slot."""
        call = self.sent.pop(reference)
        self._free(call)
        self.unfinished -= self.jobs[call.index].cost
        return call

    def again(self, reference: Any) -> None:
        """Put the job of a lost call back to the front of the queue."""
        call = self.sent.pop(reference)
        self._free(call)
        self._wait_again(call.index)

    def take_back(self, slot: Slot) -> list[int]:
        """Put all jobs of a slot back to the front of the queue; the first of them was running."""
        for reference in [reference for reference, call in self.sent.items() if call.slot is slot]:
            del self.sent[reference]
        held, slot.jobs = slot.jobs, []
        for index in reversed(held):
            self._wait_again(index)
        return held

    def _free(self, call: Call) -> None:
        call.slot.jobs.remove(call.index)
        call.slot.begun = now()

    def _wait_again(self, index: int) -> None:
        self.sends[index] += 1
        self.waiting.appendleft(index)
