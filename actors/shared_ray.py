"""One Ray for the runs of a process: the first run that needs one starts it, and it ends with the process.

A run that needs another Ray than the one that is there (another cluster, a dashboard, other environment variables) ends
that one and starts its own. What cleans up if this process is killed is in own_ray.py.

One thread talks to Ray: its calls may block for ever, and then this process must still be able to end. It lives as long
as the process, as what Ray starts would be killed by the system when the thread that started it ends.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from raysim.actors.own_ray import OwnRay
from raysim.actors.side_processes import SideProcesses

Result = TypeVar("Result")
Calls = SimpleQueue[tuple["Future[Any]", Callable[[], Any]]]

SHUTDOWN = 20.0
"""Seconds that Ray has to shut down before what is left of it is killed."""
LEAVE = 5.0
"""Seconds that leaving a cluster may take, which notices by itself that this process has gone."""
BROKEN = 2.0
"""The same for one of which a part is dead or frozen: it is killed before, and this process lets go."""


@dataclass(frozen=True)
class Request:
    """Properties of Ray that a run asks for; all else Ray's processes inherit from this one when Ray starts."""

    address: str
    dashboard: bool
    verbose: bool
    code: tuple[str, ...] = ()
    """Folders and files of modules that are sent to a cluster that is joined from outside."""
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    import_path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))
    folder: Path = field(default_factory=Path.cwd)

    def is_met_by(self, other: Request) -> bool:
        """Whether a Ray that was started for ``other`` fits this run; a dashboard more than asked for is accepted."""
        return replace(other, dashboard=self.dashboard) == self and (other.dashboard or not self.dashboard)


@dataclass(frozen=True)
class Connection:
    """This process's connection to Ray, made by a run."""

    request: Request
    own: OwnRay | None
    """The Ray that was started here; None if a cluster was joined."""
    dashboard: str
    """Host and port of the dashboard; empty if there is none, or it was not up when Ray was."""
    side: SideProcesses | None = None
    """Processes of the Ray that was started here which began later than it; among them the dashboard."""
    control_store: str = ""
    """Host and port of the control store of the Ray that was started here."""


_kept: Connection | None = None
_process = 0
"""Process that keeps the connection; one that was forked off it must not end it."""
_calls: Calls | None = None
"""Queue of the thread's calls, done one after another; None: there is no thread, or it was given up."""
given_up = False
"""Whether a thread is blocked, so that this process can only end without its exit handlers."""


def is_connected() -> bool:
    """Whether this process is connected to a Ray, by raysim or by the user."""
    is_initialized = getattr(sys.modules.get("ray"), "is_initialized", None)  # None while another thread imports it
    return is_initialized is not None and bool(is_initialized())


def control_store() -> str:
    """Host and port of the control store of the Ray that this process is connected to."""
    import ray

    return str(ray.get_runtime_context().gcs_address)


def take(request: Request) -> Connection | None:
    """Take the connection that an earlier run kept if it meets the request, and end it otherwise.

    None: there is none, or it is not ours (``ray.init()`` of the user's own, which every run uses as it is).
    """
    global _kept
    found, _kept = _kept, None
    if found is None or _process != os.getpid():
        return None
    if found.own is not None and found.own.dead():
        if is_connected() and control_store() == found.control_store:
            shut_down(found.own)  # it died by itself, and this process still holds on to it
        else:  # as after the user's own ray.shutdown()
            found.own.end()
        return None
    if is_connected() and request.is_met_by(found.request):
        return found
    shut_down(found.own)
    return None


def keep(connection: Connection) -> None:
    """Keep a connection for later runs of this process, with which it ends."""
    global _kept, _process
    if _process != os.getpid():
        _process = os.getpid()
        atexit.register(end)  # before Ray's own, which was registered when Ray was imported
    _kept = connection


def end() -> None:
    """End the kept connection."""
    global _kept
    found, _kept = _kept, None
    if found is not None and _process == os.getpid():
        shut_down(found.own)


def shut_down(own: OwnRay | None) -> None:
    """Leave Ray, and end the one that was started here; by force what does not end by itself, or cannot."""
    import ray

    if own is not None:
        own.end_side()
    broken = own is not None and bool(own.dead() or own.frozen())
    if own is not None and broken:
        own.end()
    done = wait([submit(ray.shutdown)], LEAVE if own is None else BROKEN if broken else SHUTDOWN).done
    if own is not None:
        own.end()
    if not done:
        give_up()


def submit(function: Callable[[], Result]) -> Future[Result]:
    """Queue a call for the thread of this process; its result or error is the future's."""
    global _calls
    if _calls is None:
        _calls = SimpleQueue()
        threading.Thread(target=_work, args=(_calls,), name="ray", daemon=True).start()
    future: Future[Result] = Future()
    _calls.put((future, function))
    return future


def _work(calls: Calls) -> None:
    while True:
        future, function = calls.get()
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)
        del future, function


def give_up() -> None:
    """Abandon the thread, which is blocked for good: the next call gets another."""
    global _calls, given_up
    _calls, given_up = None, True
