"""A run's virtual time: which client tasks each round computes, and what the tables say of the clients' devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim import schedule, seeds
from raysim.client_side.drift import check_drift_time
from raysim.cohort import samples_of
from raysim.samplers._sampler import Known
from raysim.traits import ExtraBytes, Sizes
from raysim.virtual_time.devices.availability import Absence, absent
from raysim.virtual_time.devices.profiles import Profiles, make_profiles
from raysim.virtual_time.fleet import Choice, Choose, Chosen, ClockSettings, Fleet, never_available
from raysim.virtual_time.timeline import Flight, ServerStep, plan, steps_one_by_one
from raysim.workloads.batch_bounds import samples_of_steps

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.method import FlatModel, Message
    from raysim.samplers._sampler import Sampler
    from raysim.workloads.federated_data import Federation

NAMED = 10
"""Clients that a note names at most."""


class VirtualClock:
    """All server steps of a run, known before its first round unless a sampler looks at losses (:attr:`as_it_goes`).

    Args:
        worker: a worker of this process, for the clients' samples and the bytes of the change of the shared entries.
        message: what a client is sent in the first round.

    Raises:
        ConfigError: the run could not end (:func:`raysim.virtual_time.timeline.plan`).
    """

    def __init__(self, config: RunConfig, worker: Worker, message: Message) -> None:
        self.fleet = fleet_of(config, worker, message.nbytes)
        self._settings = ClockSettings(config.seed, config.timing, config.schedule, schedule.planned_intervals(config))
        self._stale, self._compares = config.timing.stale, True
        self.as_it_goes: bool = config.schedule.sampler.adaptive
        """Whether each step is planned only when its round begins (:meth:`advance`)."""
        self.steps: list[ServerStep] = []
        """Those that are planned."""
        self._taken: dict[int, list[tuple[Flight, int]]] = {}
        """The tasks of each version whose updates a step takes, and the step's number."""
        self._open: set[int] = set()
        """Versions of tasks under way at the end: a run that is trained longer takes their updates."""
        self._coming: Iterator[ServerStep] | None = None
        self._cohorts = _Cohorts()
        if not self.as_it_goes:
            steps, under_way = plan(self._settings, self.fleet, _chooser(config, worker.federation))
            for step in steps:
                self._add(step)
            check_drift_time(config, steps[-1].time)
            self._open = {flight.version for flight in under_way}

    def _add(self, step: ServerStep) -> None:
        self.steps.append(step)
        for flight in step.arrivals:
            self._taken.setdefault(flight.version, []).append((flight, step.number))

    def advance(self, number: int, before: Callable[[], Sequence[Chosen]], choose: Choose) -> None:
        """Plan the step that ends round ``number``, where steps are planned as the run goes.

        Args:
            before: the cohorts of all rounds before it, in order: where the run begins or has gone back, their events
                are gone through once more.
            choose: chooses those of this round.
        """
        coming = self._coming if len(self.steps) == number - 1 else None
        if coming is None:
            self.steps.clear()
            self._taken.clear()
            self._cohorts.recorded = iter(before())
            coming = steps_one_by_one(self._settings, self.fleet, self._cohorts)
        # Events that could not be gone through, as data was lost, are begun again.
        self._coming, self._cohorts.choose = None, choose
        try:
            while len(self.steps) < number:
                self._add(next(coming))
        finally:
            self._cohorts.choose = None  # it holds the run, which holds this clock
        self._coming = coming

    def step(self, number: int) -> ServerStep:
        """The server step that ends round ``number``, counted from 1."""
        return self.steps[number - 1]

    @property
    def notes(self) -> list[str]:
        """Notes on the devices for the user before the run, a sentence each."""
        never = never_available(self.fleet.profiles)
        if not never:
            return []
        clients = ", ".join(map(str, never[:NAMED])) + (", …" if len(never) > NAMED else "")
        return [f"{len(never)} of {self.fleet.profiles.clients} clients are never available and never train: {clients}"]

    def tasks(self, number: int, after: int = 0) -> list[tuple[Flight, int]]:
        """The client tasks that a round computes, by client, and the server step that takes the update of each.

        They are those of its version whose updates a step takes, and a later one than ``after``.
        """
        return sorted((flight, step) for flight, step in self._taken.get(number - 1, ()) if step > after)

    def cohort(self, number: int) -> list[int]:
        """The clients that count as a round's cohort, ascending: those sampled, or those whose updates it takes.

        If a cohort is lost as a whole, the round samples another one, and the last counts.
        """
        step = self.step(number)
        if self._stale:
            return sorted(flight.client for flight in step.arrivals)
        opened = max(flight.start for flight in step.dispatched)
        return sorted(flight.client for flight in step.dispatched if flight.start == opened)

    def needed(self, version: int, number: int) -> bool:
        """Whether a step after ``number``, of this run or a longer one, takes an update that starts from a version."""
        return version in self._open or any(taken > number for _, taken in self._taken.get(version, ()))

    def columns(self, number: int) -> dict[str, float]:
        """A round's columns of the rounds table; joules are also those of tasks whose updates no step takes."""
        step, watts = self.step(number), self.fleet.profiles.watts
        ended = [*step.arrivals, *step.lost, *step.canceled]
        return {
            "virtual_seconds": step.time,
            "joules": float(sum(watts[flight.client] * (flight.end - flight.start) for flight in ended)),
            "clients_lost": len(step.lost),
            "clients_late": len(step.canceled),
            "staleness": float(np.mean(step.staleness())),
        }

    def unused_bytes(self, number: int) -> int:
        """Bytes sent to clients in a round beside those whose tasks are computed."""
        computed = sum(flight.bytes_down for flight, _ in self.tasks(number))
        return sum(flight.bytes_down for flight in self.step(number).dispatched) - computed

    def wrong_bytes(self, number: int, down: Mapping[int, int], up: Sequence[int]) -> str:
        """A sentence, once in a run, if the clock has charged other bytes for a round than were sent; else empty.

        Args:
            down: bytes of the messages to the clients whose tasks the round computes, by client.
            up: bytes of the updates that it takes.
        """
        if not self._compares or len(up) < len(self.step(number).arrivals):
            self._compares = False  # a client failed, which the clock cannot know
            return ""
        charged = {flight.client: flight.bytes_down for flight, _ in self.tasks(number)}
        wrong = [(down[client], size) for client, size in charged.items() if down[client] != size]
        found = [f"{size} bytes to a client, of {sent}" for sent, size in wrong[:1]]
        wrong = [(sent, self.fleet.bytes_up) for sent in up if sent != self.fleet.bytes_up]
        found += [f"{size} bytes for an update, of {sent}" for sent, size in wrong[:1]]
        if not found:
            return ""
        self._compares = False
        return (
            f"round {number}: virtual time has charged {' and '.join(found)}, so that it runs too fast or too slow. "
            "The method's traits extra_bytes and upload_bytes are to say what it sends"
        )

    def mark(self, number: int, rows: Iterable[dict[str, Any]]) -> None:
        """Put columns about a round's updates into their rows of the clients table."""
        flights = {flight.client: flight for flight in self.step(number).arrivals}
        for row in rows:
            flight = flights[row["client"]]
            row |= {"dispatched": flight.start, "arrived": flight.end, "staleness": number - 1 - flight.version}


class _Cohorts:
    """The cohorts of a clock that goes on with the run: those recorded, then the choices of the present round."""

    def __init__(self) -> None:
        self.recorded: Iterator[Chosen] = iter(())
        self.choose: Choose | None = None

    def __call__(self, choice: Choice, generator: np.random.Generator) -> Chosen:
        for chosen in self.recorded:
            return chosen
        assert self.choose is not None, "advance sets it"
        return self.choose(choice, generator)


def _chooser(config: RunConfig, federation: Federation) -> Choose | None:
    """A sampler's cohorts of idle clients; None for uniform ones, which the clock draws by itself."""
    sampler: Sampler = config.schedule.sampler
    if sampler.in_virtual_time == "uniform":
        return None
    samples = samples_of(federation)

    def choose(choice: Choice, generator: np.random.Generator) -> Chosen:
        known = Known(choice.number, choice.clients, choice.count, samples)
        return sampler.cohort(known, generator).tolist(), 0.0

    return choose


def fleet_of(config: RunConfig, worker: Worker, bytes_down: int) -> Fleet:
    """The fleet of a run's clients that ever take part.

    Args:
        bytes_down: of a message of the first round.
    """
    federation, traits, model = worker.federation, worker.method.traits, worker.built(0)
    clients, extra = schedule.trainable(config, federation.clients), ExtraBytes()
    held = np.array([federation.samples(client) for client in range(clients)], np.int64)
    if traits.extra_bytes is not None:
        statistics_stay = config.training.batchnorm_statistics == "local"
        extra = traits.extra_bytes(sizes_of(model, federation.input_spec(0).classes, statistics_stay))
    bytes_up = traits.bytes_up(model.shared_tensors) + extra.up
    profiles, samples = profiles_of(config, clients), trained_samples(config, held)
    return Fleet(profiles, samples, bytes_down, bytes_up, extra.down_later, extra.down_per_client)


def sizes_of(model: FlatModel, classes: int, statistics_stay: bool) -> Sizes:
    """Sizes of a model; its features are the inputs of the first matrix in its head."""
    head = getattr(model.module, "head", None)
    matrices = [tensor for tensor in head.parameters() if tensor.dim() > 1] if head is not None else []
    features = int(matrices[0].shape[1]) if matrices else 0
    shared, parameters = model.shared.numel(), model.shared_parameter_count
    private = model.parameters.numel() - parameters if statistics_stay else model.buffer.numel() - shared
    return Sizes(parameters, shared, private, features, classes)


def trained_samples(config: RunConfig, held: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many samples the clients that hold these numbers of them train on in a local epoch [n].

    Mini-batches are cut as training cuts them (:mod:`raysim.workloads.batch_bounds`). An epoch of DP-SGD has Poisson
    batches, of which the mean sizes are charged: with ⌈m / B⌉ of the mean size B that is up to B − 1 more than the m
    samples that the client holds, a departure from m · epochs.
    """
    training, private = config.training, config.privacy.kind == "dp-sgd"
    if not private and training.steps_per_epoch == 0 and training.last_batch != "drop":
        return held

    def of_epoch(samples: int) -> int:
        if private and samples:
            from raysim.training.private_gradient import poisson_sampling  # late: torch, which starts slowly

            size, steps = poisson_sampling(samples, training)
            return size * steps
        return samples_of_steps(samples, training.batch_size, training.last, training.steps_per_epoch)

    counts, places = np.unique(held, return_inverse=True)
    return np.array([of_epoch(count) for count in counts.tolist()], np.int64)[places]


def profiles_of(config: RunConfig, clients: int) -> Profiles:
    """The devices of the clients that ever take part, and when they are there.

    Raises:
        ConfigError: the trace file is missing, damaged, or has too few rows.
    """
    profiles = make_profiles(config.devices, clients, config.seed)
    if config.events.leave:
        draw = seeds.numpy_generator(config.seed, "events leave")
        leaving = schedule.participants(clients, config.events.leave, draw).tolist()
        absence = Absence(frozenset(leaving), config.events.leave_at, config.events.back_at or math.inf)
        profiles = replace(profiles, availability=absent(profiles.availability, absence, clients))
    return profiles
