"""The order of events in virtual time: who trains when, from which version of the server's state, and for which step.

All of it follows from settings, seed and the clients' devices, without any training: durations come from profiles,
samples, local epochs and bytes. A run computes its client tasks in parallel and takes their results in this order.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from raysim import seeds
from raysim.errors import ConfigError
from raysim.schedule import cohort_size, joined, sample
from raysim.units import counted
from raysim.virtual_time.fleet import Choice, Choose, ClockSettings, Fleet, check
from raysim.virtual_time.idle_clients import IdleClients
from raysim.virtual_time.rules._rule import Moment, TimingRule

ATTEMPTS = 1000
"""A run ends if this many client tasks, or cohorts, in a row bring no update."""


class Flight(NamedTuple):
    """One client task in virtual time, from the message's dispatch to the update's arrival."""

    client: int
    version: int
    """Server steps before it: the state that the client starts from."""
    start: float
    end: float
    """When the update arrives, or the task is lost."""
    lost: bool
    """Whether no update comes: the client dropped out, or could not be reached any more."""
    bytes_down: int = 0
    """Bytes of its message."""


@dataclass(frozen=True)
class ServerStep:
    """A step of the server, which makes version ``number`` of its state."""

    number: int
    """Counted from 1: the round."""
    time: float
    """Virtual seconds from the start of the run."""
    dispatched: tuple[Flight, ...]
    """Client tasks that began since the step before, from version ``number`` − 1."""
    arrivals: tuple[Flight, ...]
    """Updates that the step takes, by client in ascending order."""
    lost: tuple[Flight, ...]
    """Tasks that ended without an update since the step before."""
    canceled: tuple[Flight, ...]
    """Tasks that were late, and end with the step."""

    def staleness(self) -> list[int]:
        """Server steps τ that each arrival missed [arrivals]."""
        return [self.number - 1 - flight.version for flight in self.arrivals]


def plan(settings: ClockSettings, fleet: Fleet, choose: Choose | None = None) -> tuple[list[ServerStep], list[Flight]]:
    """All server steps of a run, and the tasks under way after the last, whose updates a longer run would take.

    Raises:
        ConfigError: no client can ever bring an update in time, :data:`ATTEMPTS` times in a row none did, or no client
            will ever be available again.
    """
    check(settings, fleet)
    simulation = _Simulation(settings, fleet, choose)
    steps = list(simulation.steps())
    return steps, [flight for flight in (*simulation.buffer, *simulation.flying.values()) if not flight.lost]


def steps_one_by_one(settings: ClockSettings, fleet: Fleet, choose: Choose) -> Iterator[ServerStep]:
    """The same steps, each planned when it is asked for: ``choose`` may look at what the steps before have trained.

    Raises:
        ConfigError: as of :func:`plan`.
    """
    check(settings, fleet)
    return _Simulation(settings, fleet, choose).steps()


@dataclass
class _Simulation:
    """The state of the clock, and the one loop of all modes."""

    settings: ClockSettings
    fleet: Fleet
    choose: Choose | None
    time: float = 0.0
    version: int = 0
    epochs: int = 0
    """Local epochs of all versions before this one."""
    opened: float | None = None
    """When the cohort was sampled that is waited for; None before that, and in modes without cohorts."""
    cohort: int = 0
    """How many clients a usual round samples, or how many train at a time."""
    sampled: int = 0
    """How many were sampled when the round opened."""
    buffer: list[Flight] = field(default_factory=list)
    """Updates that have arrived since the last step."""
    flying: dict[int, Flight] = field(default_factory=dict)
    """Tasks under way, by client."""
    awaited: int = 0
    """Those of them that start from the present state."""
    of_round: int = 0
    """Updates in the buffer that do."""
    queue: list[tuple[float, float, int, Flight]] = field(default_factory=list)
    """Tasks under way and canceled ones, as a heap by end; among equal ones by a drawn number, then the client's."""
    dispatched: list[Flight] = field(default_factory=list)
    lost: list[Flight] = field(default_factory=list)
    canceled: list[Flight] = field(default_factory=list)
    wake: float = math.inf
    """When a client is available again, while none is that could be given a task."""
    failures: int = 0

    def __post_init__(self) -> None:
        schedule, clients = self.settings.schedule, self.fleet.profiles.clients
        self.rule: TimingRule = self.settings.timing.rule
        self.present = joined(0, clients, schedule.joins, schedule.join_every)
        self.idle = IdleClients(range(self.present), self.fleet.profiles.availability)
        self.draw = seeds.numpy_generator(self.settings.seed, "timeline")
        self.ties = seeds.numpy_generator(self.settings.seed, "timeline ties")
        self.participants = self.draw
        self.trained, self.longer = np.zeros(clients, np.bool_), False
        self._set_version()

    def steps(self) -> Iterator[ServerStep]:
        while self.version < len(self.settings.intervals):
            self._dispatch()
            # Carried updates have arrived, no task is under way, and no idle client is available.
            stranded = self.opened is None and self.rule.in_rounds and bool(self.buffer) and not self.flying
            if not stranded:
                self._wait()
            if stranded or self._due():
                yield self._step()

    # -- dispatch ---------------------------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Give tasks to idle clients, as many as the mode asks for, unless a cohort is waited for."""
        if self.opened is not None:
            return
        wanted = self.rule.begins(self.cohort, len(self.flying))
        if wanted <= 0 or self.time < self.wake < math.inf:
            return
        if self.choose is not None:
            chosen = self._chosen(wanted, self.choose)
        elif self.rule.in_rounds and len(self.idle) == self.present and self.fleet.profiles.availability is None:
            chosen = sample(min(wanted, self.present), self.present, self.participants).tolist()
        else:
            chosen = self.idle.sample(wanted, self.time, self.participants)
        for client in chosen:
            self._launch(client)
        self.wake = math.inf
        if chosen and self.rule.in_rounds:
            self.opened, self.sampled = self.time, len(chosen)
        elif len(chosen) < wanted:
            self.wake = self.idle.next_available(self.time)

    def _chosen(self, wanted: int, choose: Choose) -> Sequence[int]:
        there = self.idle.available(self.time)
        if not there:
            return ()
        count = min(wanted, len(there))
        choice = Choice(self.version + 1, self.time, there, count, self.seconds, self.bytes_down)
        clients, seconds = choose(choice, self.participants)
        self.time += seconds
        return clients

    def _launch(self, client: int) -> None:
        profiles = self.fleet.profiles
        end, lost = self.time + self.seconds[client], False
        if profiles.drop_probability[client] > 0 and self.draw.random() < profiles.drop_probability[client]:
            end, lost = self.time + self.seconds[client] * self.draw.random(), True
        if profiles.availability is not None:
            gone = profiles.availability.until(client, self.time)
            if gone < end:
                end, lost = max(gone, self.time), True  # it may have gone while the cohort was chosen
        flight = Flight(client, self.version, self.time, end, lost, self.bytes_down[client])
        self.idle.remove(client)
        self.flying[client] = flight
        self.awaited += 1
        self.dispatched.append(flight)
        heapq.heappush(self.queue, (end, self.ties.random() if self.rule.draws_ties else 0.0, client, flight))

    # -- events -----------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """On to the next event: a task ends, the deadline comes, or a client is available again."""
        ends, deadline = self._next(), self._deadline()
        if ends > min(deadline, self.wake):
            self.time = max(self.time, min(deadline, self.wake))
        elif math.isinf(ends):
            waiting = f" with {counted(len(self.buffer), 'update')} in the buffer" if self.buffer else ""
            raise ConfigError(
                f"round {self.version + 1}: no client is available any more after {self.time:.6g} virtual seconds"
                f"{waiting}, and server steps are left: {len(self.settings.intervals) - self.version}. Lower "
                f"{'timing.buffer or ' * bool(waiting)}schedule.rounds, make the windows of devices.trace come again "
                "with a period, or set events.back_at"
            )
        else:
            self.time = ends
            self._take(heapq.heappop(self.queue)[3])

    def _next(self) -> float:
        """When the next task under way ends; inf: none is."""
        while self.queue and self.flying.get(self.queue[0][2]) is not self.queue[0][3]:
            heapq.heappop(self.queue)  # it was canceled
        return self.queue[0][0] if self.queue else math.inf

    def _take(self, flight: Flight) -> None:
        del self.flying[flight.client]
        self.awaited -= flight.version == self.version
        if not flight.lost:
            self.of_round += flight.version == self.version
            self.buffer.append(flight)
            self.failures = 0
            return
        self.lost.append(flight)
        self.idle.add(flight.client)
        self.wake = math.inf
        self._failed(not self.rule.in_rounds)

    def _failed(self, counts: bool) -> None:
        self.failures += counts
        if self.failures >= ATTEMPTS:
            what = "cohorts" if self.rule.in_rounds else "client tasks"
            raise ConfigError(
                f"round {self.version + 1}: {ATTEMPTS} {what} in a row brought no update. Lower "
                "devices.drop_probability, or make windows and deadlines longer than a client task"
            )

    # -- steps ------------------------------------------------------------------------------------------------------

    def _deadline(self) -> float:
        """When the open round ends, if it has a deadline that has not passed."""
        end = math.inf if self.opened is None else self.rule.ends(self.opened)
        return end if self.time < end else math.inf

    def _due(self) -> bool:
        """Whether the server takes a step now. A round that can bring nothing any more is opened again."""
        more = self._next() == self.time
        counts = self.cohort, self.sampled, len(self.buffer), self.awaited, self.of_round
        due = self.rule.due(Moment(self.time, self.opened, *counts, more))
        if due and not self.buffer and not (self.rule.stale and self.flying):
            self._cancel()
            self.opened = None
            self._failed(True)
        return due and bool(self.buffer)

    def _cancel(self) -> None:
        """End all tasks under way; they are late."""
        for client, flight in sorted(self.flying.items()):
            self.canceled.append(flight._replace(end=self.time, lost=True))
            self.idle.add(client)
        self.flying.clear()
        self.awaited = 0

    def _step(self) -> ServerStep:
        arrivals = sorted(self.buffer)
        if not self.rule.stale:
            self._cancel()
        self.version, self.awaited, self.of_round = self.version + 1, 0, 0
        step = ServerStep(
            self.version, self.time, tuple(self.dispatched), tuple(arrivals), tuple(self.lost), tuple(self.canceled)
        )
        for flight in arrivals:
            self.idle.add(flight.client)
            self.longer = self.longer or (self.fleet.messages_grow and not self.trained[flight.client])
            self.trained[flight.client] = True
        self.buffer, self.dispatched, self.lost, self.canceled = [], [], [], []
        self.opened, self.wake = None, math.inf
        self.epochs += self.settings.intervals[self.version - 1]
        if self.version < len(self.settings.intervals):
            self._set_version()
        return step

    def _set_version(self) -> None:
        """Set what changes with the version: local epochs, bytes, late joiners, the round's random stream."""
        settings, schedule = self.settings, self.settings.schedule
        epochs = settings.intervals[self.version]
        if self.version == 0 or self.longer or epochs != settings.intervals[self.version - 1]:
            sent = self.fleet.message_bytes(self.trained)
            self.bytes_down, self.seconds = sent.tolist(), self.fleet.seconds(epochs, sent)
            self.longer = False
        present = joined(self.epochs, self.fleet.profiles.clients, schedule.joins, schedule.join_every)
        for client in range(self.present, present):
            self.idle.add(client)
        self.present = present
        self.cohort = min(self.rule.at_once(cohort_size(present, schedule.sampling_rate)), present)
        if self.rule.in_rounds:
            self.participants = seeds.numpy_generator(settings.seed, "participants", self.version + 1)
