"""Client actors without torch and without a model, for tests of what sends jobs to actors and not of the jobs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

import ray

from raysim.actors.client import Client, Starter, actor_name
from raysim.actors.pool import RayPool
from raysim.exchange.pool_protocol import Seat
from raysim.exchange.profile_marks import Clock, now, share_clock


class Light(Client):
    """Does jobs that need no worker."""

    def __init__(self, threads: int, slot: int, clock: Clock, libraries: Sequence[str] = ()) -> None:
        share_clock(clock)
        self._name = actor_name(slot)
        self._seat = Seat(slot, ray.util.get_node_ip_address(), os.getpid(), "cpu")

    def prepare(self, config: Any, federation: Any) -> str:
        return str(ray.get_runtime_context().get_node_id())

    def run(self, task: Any, *inputs: Any) -> Any:
        started = now()
        result, outputs = task.run(None, inputs)
        report = (result, started, now() - started, self._seat)
        return (report, *outputs) if outputs else report

    def process(self) -> int:
        return os.getpid()


def processes(pool: RayPool) -> list[int]:
    """Process numbers of its actors."""
    found: list[int] = ray.get([slot.actor.process.remote() for slot in pool._slots if slot.actor is not None])
    return found


class LightStarter(Starter):
    """Starts such actors."""

    actor: ClassVar[Any] = ray.remote(Light)
