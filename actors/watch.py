"""Detects, from the launching process, that Ray or the driver has gone silent."""

from __future__ import annotations

import time
from collections.abc import Callable

from raysim.actors.own_ray import OwnRay, processor_time, state

STEP = 2.0
"""Seconds between two looks count up to this number: a launcher that was itself suspended could hear no heartbeat."""
START = 300.0
"""Before the first sign of life (Ray starts, the driver's process starts) the limit is at least this many seconds."""
BUSY = 10.0
"""A driver that uses the processor is not frozen: it may be silent this many times as long."""


class Watch:
    """Watches for signs of life of the driver and of Ray.

    Args:
        limit: seconds without a sign of life; 0: no limit.
    """

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.own: OwnRay | None = None
        """The Ray that was started here, if one was."""
        self.driver = 0
        """The driver's process, once it is known and where it runs on this machine."""
        self.joining = ""
        """Address of the Ray that is just being joined."""
        self.head = ""
        """Address of the cluster that was joined, if one was: its head is asked apart from the run's own calls."""
        self._limit, self._clock = limit, clock
        self._silent = self._frozen = self._headless = 0.0
        self._looked = clock()
        self._heard = self._ever_heard = self._head_heard = False
        self._used = 0

    def joins(self, address: str) -> None:
        """Note that a Ray that is up already is being joined, for which it has no longer than for any answer."""
        self.joining = address

    def driver_starts(self) -> None:
        """Note that a driver's process is being started, which may take longer than an answer."""
        self._heard = self._ever_heard = False
        self._silent, self.driver, self.joining = 0.0, 0, ""

    def what_is_gone(self) -> str:
        """Description of a part of the Ray started here that is dead or frozen; empty if there is none."""
        return "" if self.own is None else self.own.dead() or self.own.frozen()

    def heard(self) -> None:
        """Note a sign of life: the driver and Ray's control store have answered. Called from another thread."""
        self._heard = True

    def head_heard(self) -> None:
        """Note that the head of the cluster that was joined has answered. Called from another thread."""
        self._head_heard = True

    def look(self) -> str:
        """Describe what is gone, or empty; called about once a second."""
        now = self._clock()
        passed, self._looked = min(now - self._looked, STEP), now
        if self._heard:
            self._heard, self._ever_heard, self._silent = False, True, 0.0
            self._used = processor_time(self.driver) if self.driver else 0
        else:
            self._silent += passed
        if self.own is not None:
            if dead := self.own.dead():
                return dead
            frozen = self.own.frozen()
            self._frozen = self._frozen + passed if frozen else 0.0
            if frozen and self._limit and self._frozen >= self._limit:
                return frozen
        if self.head:
            self._headless = 0.0 if self._head_heard else self._headless + passed
            self._head_heard = False
            if self._limit and self._headless >= self._limit:
                return f"the head of the Ray cluster at {self.head} has not answered for {self._headless:.0f} s"
        limit = self._limit if self._ever_heard or self.joining else max(self._limit, START)
        if not self._limit or self._silent < limit:
            return ""
        if self.joining:
            return (
                f"the Ray cluster at {self.joining} has answered, and has not let this process join for "
                f"{self._silent:.0f} s. Next: look there whether it is sound (`ray status`), and has the same "
                "version of Ray; a slow one has longer with --engine.heartbeat_limit"
            )
        if not self._ever_heard:
            return f"Ray has not brought up the run's driver for {self._silent:.0f} s"
        if self.driver and state(self.driver) == "T":
            return f"the driver (process {self.driver}) has been frozen for {self._silent:.0f} s"
        if self.driver and processor_time(self.driver) > self._used and self._silent < BUSY * self._limit:
            return ""
        return f"neither the driver nor Ray has answered for {self._silent:.0f} s"
