"""The set of clients without a task; drawing a few takes little time however many there are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from raysim.virtual_time.devices.availability import Availability

TRIES = 32
"""Random draws of a single client before all clients are searched for an available one."""


class IdleClients:
    """A set of clients.

    Args:
        clients: those in it at the start.
        availability: when each can be reached; None: always.
    """

    def __init__(self, clients: Iterable[int], availability: Availability | None) -> None:
        self._clients = list(clients)
        self._place = {client: place for place, client in enumerate(self._clients)}
        self._availability = availability

    def __len__(self) -> int:
        return len(self._clients)

    def add(self, client: int) -> None:
        """Put a client in."""
        self._place[client] = len(self._clients)
        self._clients.append(client)

    def remove(self, client: int) -> None:
        """Take a client out."""
        place, last = self._place.pop(client), self._clients.pop()
        if last != client:
            self._clients[place], self._place[last] = last, place

    def sample(self, count: int, time: float, generator: np.random.Generator) -> list[int]:
        """A uniform sample without replacement of at most ``count`` clients that are available at ``time``, ascending.

        They stay in the set.
        """
        if count == 1 and self._clients:  # what an asynchronous server asks for at every arrival
            for _ in range(TRIES):
                client = self._clients[int(generator.random() * len(self._clients))]
                if self._available(client, time):
                    return [client]
        chosen: list[int] = []
        in_order = sorted(self._clients)  # the order of comings and goings must not matter
        for place in generator.permutation(len(in_order)).tolist():
            if len(chosen) == count:
                break
            if self._available(in_order[place], time):
                chosen.append(in_order[place])
        return sorted(chosen)

    def available(self, time: float) -> list[int]:
        """Those that are available at ``time``, ascending."""
        return [client for client in sorted(self._clients) if self._available(client, time)]

    def next_available(self, time: float) -> float:
        """The first moment from ``time`` on at which one of them is available; inf if there is none."""
        if self._availability is None:
            return time if self._clients else math.inf
        return min((self._availability.next(client, time) for client in self._clients), default=math.inf)

    def _available(self, client: int, time: float) -> bool:
        return self._availability is None or self._availability.until(client, time) > time
