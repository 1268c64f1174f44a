"""DriverActor: holds the global state of one run and takes it through its rounds."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import ray

from raysim.outcome import Outcome, guarded


class EventLog:
    """The observer's side in the driver: every call is kept until the launching process fetches it."""

    def __init__(self) -> None:
        self._events: list[tuple[str, tuple[Any, ...]]] = []
        self._new = threading.Condition()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def record(*arguments: Any) -> None:
            with self._new:
                self._events.append((name, arguments))
                self._new.notify_all()

        return record

    def since(self, position: int, timeout: float) -> list[tuple[str, tuple[Any, ...]]]:
        with self._new:
            self._new.wait_for(lambda: len(self._events) > position, timeout)
            return self._events[position:]


@ray.remote(concurrency_groups={"run": 1, "watch": 2})  # type: ignore[call-overload]
class DriverActor:
    """One run. A new incarnation after a crash finds the checkpoints in the run folder and goes on from the last.

    Args:
        config: the run's settings.
        folder: its run folder, which exists.
    """

    def __init__(self, config: Any, folder: str) -> None:
        self._config = config
        self._folder = Path(folder)
        self._events = EventLog()
        self._stop = threading.Event()

    @ray.method(concurrency_group="run")
    def run(self) -> Outcome:
        """All rounds that are left."""
        return guarded(self._drive)

    def _drive(self) -> str:
        from actors.early import EarlyActors
        from actors.parallel import RayParallel

        early = EarlyActors(self._config)  # before anything that takes long
        try:
            from raysim.simulation import drive

            parallel = RayParallel(self._events.preparing, early.dismiss)
            return drive(self._config, self._folder, early.pool, self._events, self._stop.is_set, parallel)
        finally:
            early.dismiss()

    @ray.method(concurrency_group="watch")
    def events(self, position: int, timeout: float = 1.0) -> list[tuple[str, tuple[Any, ...]]]:
        """Observer calls from ``position`` on; waits up to ``timeout`` seconds for the first."""
        return self._events.since(position, timeout)

    @ray.method(concurrency_group="watch")
    def stop(self) -> None:
        """Drop the round in flight, save, and end."""
        self._stop.set()

    @ray.method(concurrency_group="watch")
    def process(self) -> tuple[int, float]:
        """Process number and clock, for faults that are made on purpose."""
        import os

        return os.getpid(), time.time()
