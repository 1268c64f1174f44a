"""The jobs on their way through the Ray pool: which wait, which are sent, which were lost and when one is late."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from raysim.actors.slots import Slot
from raysim.exchange.pool_protocol import Job
from raysim.exchange.profile_marks import now


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
TIMES = 20.0
"""Default deadline, as a multiple of the time of the slowest call of the same kind and cost."""
LEAST = 300.0
"""Least default deadline in seconds: a moment of swapping or of an overloaded disk is no fault."""


class Work:
    """Jobs by number from 0 on, sent longest first, but those with a smaller ``before`` earlier."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        """Those that wait or are sent, by number."""
        self.waiting: deque[int] = deque()
        self.sent: dict[Any, Call] = {}
        """Reference of a result → its call."""
        self.sends: Counter[int] = Counter()
        self.deaths: Counter[int] = Counter()
        """How many actors each job took with it."""
        self.unfinished = 0.0
        """Cost of all that waits or is sent."""
        self.homes: dict[int, int] = {}
        """The place that last served each client that a job was about."""
        self._next = 0

    def add(self, jobs: Sequence[Job]) -> range:
        """Put jobs into the queue; their numbers."""
        numbers = range(self._next, self._next + len(jobs))
        self._next = numbers.stop
        self.jobs.update(zip(numbers, jobs, strict=True))
        self.sends.update(numbers)
        self.unfinished += sum(job.cost for job in jobs)
        self.waiting = deque(sorted((*self.waiting, *numbers), key=self._rank))
        return numbers

    def _rank(self, number: int) -> tuple[int, float, int]:
        job = self.jobs[number]
        return job.before, -job.cost, number

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
        first = self.jobs[front[0]]
        alike = [
            index
            for index in front
            if self.jobs[index].before == first.before and self.jobs[index].cost >= ALIKE * first.cost
        ]
        homes = [self.homes.get(about) if (about := self.jobs[index].about) is not None else None for index in alike]
        return next((alike[homes.index(home)] for home in (slot.place, None) if home in homes), front[0])

    def send(self, index: int, slot: Slot) -> None:
        """Mark a waiting job as sent to a slot."""
        self.waiting.remove(index)
        job, time = self.jobs[index], now()
        if job.about is not None:
            self.homes[job.about] = slot.place
        options = slot.actor.run.options(name=job.name, num_returns=1 + job.outputs)
        reply = options.remote(job.task, *job.inputs)
        reference, outputs = (reply[0], tuple(reply[1:])) if job.outputs else (reply, ())
        self.sent[reference] = Call(index, slot, outputs, time)
        if not slot.jobs:
            slot.begun = time
        slot.jobs.append(index)

    def call_of(self, slot: Slot) -> Any:
        """The reference of the result that a slot works on."""
        return next(
            reference for reference, call in self.sent.items() if call.slot is slot and call.index == slot.jobs[0]
        )

    def finished(self, reference: Any) -> Call:
        """Remove a call that has ended from its slot, and its job."""
        call = self.sent.pop(reference)
        self._free(call)
        self._forget(call.index)
        return call

    def drop(self, numbers: Collection[int]) -> None:
        """Remove jobs that wait."""
        for number in numbers:
            self.waiting.remove(number)
            self._forget(number)

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

    def _forget(self, number: int) -> None:
        self.unfinished -= self.jobs.pop(number).cost
        if not self.jobs:
            self.unfinished = 0.0  # without what rounding left
        del self.sends[number], self.deaths[number]

    def _free(self, call: Call) -> None:
        call.slot.jobs.remove(call.index)
        call.slot.begun = now()

    def _wait_again(self, index: int) -> None:
        self.sends[index] += 1
        self.waiting.appendleft(index)


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
