"""The fleet on which the order of events in virtual time depends, and what is refused before a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raysim.errors import ConfigError
from raysim.schedule import cohort_size, joined
from raysim.virtual_time.devices.traces import FORWARD

if TYPE_CHECKING:
    from raysim.config.sections import Schedule
    from raysim.config.timing import Timing
    from raysim.virtual_time.devices.profiles import Profiles

ANSWER_BYTES = 4
"""Bytes of a client's answer with its loss, a number in float32."""


@dataclass(frozen=True, eq=False)
class Fleet:
    """Facts about the clients that the clock knows."""

    profiles: Profiles
    samples: NDArray[np.int64]
    """Samples that each client trains on in a local epoch [n]."""
    bytes_down: int
    """Bytes of a message of the first round."""
    bytes_up: int
    """Bytes of an update."""
    down_later: int = 0
    """Bytes that messages are longer by from the first server step on."""
    down_per_client: int = 0
    """Bytes that a message is longer by for each other client that has been in a server step."""

    @property
    def messages_grow(self) -> bool:
        """Whether the bytes of messages change with the clients that have been in a server step."""
        return bool(self.down_later or self.down_per_client)

    def message_bytes(self, trained: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Bytes of each client's message [n].

        Args:
            trained: whether each client has been in a server step [n].
        """
        known = int(trained.sum())
        first = self.bytes_down + (self.down_later if known else 0)
        return first + self.down_per_client * (known - trained.astype(np.int64))

    def seconds(self, epochs: int, bytes_down: NDArray[np.int64] | int) -> list[float]:
        """Virtual seconds of each client's task [n], which trains for ``epochs`` local epochs.

        Args:
            bytes_down: of each client's message [n], or of all.
        """
        samples = self.samples.astype(np.float64) * epochs
        return list(map(float, self.profiles.seconds(samples, bytes_down, self.bytes_up)))

    def answer_seconds(self, clients: Sequence[int], held: NDArray[np.int64], bytes_down: Sequence[int]) -> float:
        """Virtual seconds until the last of these clients has answered with its loss: a forward pass over its samples.

        Args:
            clients: those that are asked; none take no time.
            held: training samples of each of them [n].
            bytes_down: of the message to each of them [n].
        """
        if not clients:
            return 0.0
        samples, sent = np.zeros(self.profiles.clients), np.zeros(self.profiles.clients, np.int64)
        samples[list(clients)], sent[list(clients)] = held / FORWARD, bytes_down
        return float(self.profiles.seconds(samples, sent, ANSWER_BYTES)[list(clients)].max())


@dataclass(frozen=True)
class Choice:
    """A cohort that the clock asks for."""

    number: int
    """The round, counted from 1."""
    time: float
    """Virtual seconds from the start of the run."""
    clients: list[int]
    """Idle clients that are there, ascending; at least one."""
    count: int
    """How many are wanted, at most all of them."""
    seconds: list[float]
    """Virtual seconds of each client's task [n]."""
    bytes_down: list[int]
    """Bytes of each client's message [n]."""


Chosen = tuple[Sequence[int], float]
"""The clients of a cohort, ascending, and the virtual seconds that it took to choose them."""
Choose = Callable[[Choice, np.random.Generator], Chosen]
"""Chooses a cohort; without one it is drawn uniformly."""


@dataclass(frozen=True)
class ClockSettings:
    """The settings that the order of events depends on."""

    seed: int
    timing: Timing
    schedule: Schedule
    intervals: Sequence[int]
    """Local epochs of the tasks that start from each version of the server's state."""


def never_available(profiles: Profiles) -> list[int]:
    """The clients that never train, as they have no window of availability."""
    availability = profiles.availability
    if availability is None:
        return []
    return [client for client in range(profiles.clients) if math.isinf(availability.next(client, 0.0))]


def check(settings: ClockSettings, fleet: Fleet) -> None:
    """Refuse what could never bring an update.

    Raises:
        ConfigError: as of :func:`check_profiles`, or no client meets the deadline.
    """
    check_profiles(settings.timing, settings.schedule, fleet.profiles)
    settings.timing.rule.check_seconds(min(fleet.seconds(max(settings.intervals), fleet.bytes_down)))


def check_profiles(timing: Timing, schedule: Schedule, profiles: Profiles) -> None:
    """The same, as far as neither model nor samples matter.

    Raises:
        ConfigError: no client is ever available, or the buffer is larger than the number of clients that train at a
            time or are ever available.
    """
    clients = profiles.clients
    never = never_available(profiles)
    if len(never) == clients:
        raise ConfigError("devices: no client is ever available. Change devices.trace or preset.")
    present = joined(0, clients, schedule.joins, schedule.join_every)
    at_once = timing.rule.at_once(cohort_size(present, schedule.sampling_rate))
    timing.rule.check_clients(at_once, present, present - sum(client < present for client in never))
