"""FedBuff: a server step at every K updates, which adds their weighted changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raysim.errors import ConfigError
from raysim.units import counted
from raysim.virtual_time.rules._rule import Continuous


@dataclass(frozen=True)
class Buffered(Continuous):
    """A step takes K = ``buffer`` updates of different clients; s(τ) Δ of each.

    Source: Nguyen et al. 2022, Federated Learning with Buffered Asynchronous Aggregation, Algorithm 1.
    """

    when: ClassVar[str] = "at every timing.buffer updates (FedBuff)"

    buffer: int
    buffer_weights: str

    @property
    def single(self) -> str:
        """With a buffer of one."""
        return "timing.buffer 1" if self.buffer == 1 else ""

    @property
    def equal_weights(self) -> bool:
        """As in print, if asked for."""
        return self.buffer_weights == "uniform"

    def check(self) -> None:
        """ConfigError for a buffer that never fills: a client whose update waits in it gets no new task."""
        if 0 < self.concurrency < self.buffer:
            raise ConfigError(
                f"timing.buffer: {self.buffer} updates of different clients, with timing.concurrency "
                f"{self.concurrency}. Set timing.buffer to at most {self.concurrency}, or raise timing.concurrency."
            )

    def check_clients(self, at_once: int, present: int, available: int) -> None:
        """ConfigError for a buffer of more updates than clients that train at a time, or than are ever available."""
        if self.buffer > present:
            raise ConfigError(
                f"timing.buffer: {self.buffer} updates of different clients, and there are {present} at the start. "
                "Lower it, or have more clients from the start (workload.clients, schedule.joins)."
            )
        if self.buffer > at_once:
            raise ConfigError(
                f"timing.buffer: {self.buffer} updates, and at most {counted(at_once, 'client')} at a time. Lower it, "
                "or raise timing.concurrency (schedule.sampling_rate where that is 0)."
            )
        if self.buffer > available:
            raise ConfigError(
                f"timing.buffer: {self.buffer} updates of different clients, and only {available} of "
                f"{counted(present, 'client')} can ever be available. Lower it, or make more of them available "
                "(devices.trace, events.back_at)."
            )

    def updates(self, cohort: int) -> int:
        """K, of any cohort."""
        return self.buffer


KIND = Buffered
