"""DriverActor: holds the global state of one run and takes it through its rounds."""

from __future__ import annotations

import importlib
import os
import socket
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray

from raysim.actors.quick_import import garbage_collection_paused
from raysim.actors.sending import send_modules_by_name
from raysim.driver.outcome import Outcome, guarded
from raysim.engine.observer import COSTLY, Forwarding, Several
from raysim.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from raysim.actors.early_actors import EarlyActors
    from raysim.config.run_config import RunConfig
    from raysim.config.sections import Engine


class EventLog(Forwarding):
    """The observer's side in the driver: every call is kept until the launching process has fetched it.

    ``clients_done`` wakes nobody and only the last of several is kept: a round has as many of them as remote calls, and
    two processes that talk about each would take their time from those that train.

    Args:
        heard: those of ``COSTLY`` that somebody listens to; of the others a long run has a million in vain.
    """

    _QUIET = "clients_done"

    def __init__(self, heard: Collection[str] = COSTLY) -> None:
        self._not_kept = set(COSTLY).difference(heard)
        self._events: list[tuple[str, tuple[Any, ...]]] = []
        self._first = 0  # position of the first that is kept
        self._fetched = 0  # number of events that were handed out; they may not change any more
        self._new = threading.Condition()

    def tell(self, name: str, *arguments: Any) -> None:
        """Keep the call."""
        if name in self._not_kept:
            return
        with self._new:
            kept = self._first + len(self._events) > self._fetched
            if name == self._QUIET and kept and self._events[-1][0] == name:
                self._events.pop()
            self._events.append((name, arguments))
            if name != self._QUIET:
                self._new.notify_all()

    def since(self, position: int, timeout: float) -> list[tuple[str, tuple[Any, ...]]]:
        """Events from ``position`` on; those before it are forgotten."""
        with self._new:
            del self._events[: max(0, position - self._first)]
            self._first = max(position, self._first)
            self._new.wait_for(lambda: any(name != self._QUIET for name, _ in self._events), timeout)
            self._fetched = self._first + len(self._events)
            return list(self._events)


@ray.remote(concurrency_groups={"run": 1, "watch": 2})  # type: ignore[call-overload]
class DriverActor:
    """Ray actor that drives one run; after a crash a new one goes on from the last checkpoint in the run folder.

    Args:
        early: what client actors are started with (:class:`raysim.actors.early_actors.EarlyActors`).
        folder: its run folder, which exists.
        heard: those of ``COSTLY`` that the launching process listens to.
    """

    _name = "driver"  # Ray also asks for it where __init__ could not be called

    def __init__(self, early: tuple[Engine, int, Sequence[str]], folder: str, heard: Collection[str] = COSTLY) -> None:
        self._early = early
        self._actors: EarlyActors | None = None
        self._folder = Path(folder)
        self._name = f"driver of {self._folder.name}"
        self._events = EventLog(heard)
        self._stop = threading.Event()

    @ray.method(concurrency_group="run")
    def begin(self) -> None:
        """Start client actors, and import what a run needs; to be called before :meth:`run`.

        A network or data that were given in Python have their libraries imported where they are read, which Ray does
        before it calls :meth:`run`: client actors import them meanwhile.
        """
        from raysim.actors.early_actors import EarlyActors

        with suppress(Exception):  # what fails is tried again, and told, by the run
            self._actors = EarlyActors(*self._early)
            with garbage_collection_paused():
                import raysim.driver.drive  # noqa: F401

                for library in self._early[2]:
                    importlib.import_module(library)

    @ray.method(concurrency_group="run")
    def run(self, config: Any) -> Outcome:
        """Drive all rounds that are left."""
        send_modules_by_name()  # it sends the config's code on
        return guarded(partial(self._drive, config))

    def _drive(self, config: RunConfig) -> str:
        from raysim.actors.early_actors import EarlyActors
        from raysim.actors.parallel_map import RayParallel

        if not self._folder.is_dir():
            raise ResultsError(
                f"{self._folder}: there is no such folder on {socket.gethostname()}, the cluster's head, which drives "
                "the run. Next: choose an --output on a file system that the head shares with this machine, or send "
                "the run there: `ray job submit -- python -m raysim.launch …` (docs/cluster.md)"
            )
        early = self._actors or EarlyActors(*self._early)
        try:
            with garbage_collection_paused():
                from raysim.actors.metrics import Metrics
                from raysim.driver.drive import drive

            observer = Several(self._events, Metrics(self._folder.name))
            parallel = RayParallel(self._events.preparing, early.dismiss)
            return drive(config, self._folder, partial(early.pool, config), observer, self._stop.is_set, parallel)
        finally:
            early.dismiss()

    def __repr__(self) -> str:
        """The actor's name on Ray's pages and in its logs."""
        return self._name

    @ray.method(concurrency_group="watch")
    def events(self, position: int, timeout: float = 1.0) -> list[tuple[str, tuple[Any, ...]]]:
        """Observer calls from ``position`` on; waits up to ``timeout`` seconds for the first."""
        return self._events.since(position, timeout)

    @ray.method(concurrency_group="watch")
    def stop(self) -> None:
        """Drop the round in flight, save, and end."""
        self._stop.set()

    @ray.method(concurrency_group="watch")
    def process(self) -> int:
        """Process number of the driver."""
        return os.getpid()
