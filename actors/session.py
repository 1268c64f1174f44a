"""A run on Ray from the launching process: start or join Ray, start the driver, and restart it if it dies."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from raysim.actors import cluster_probe, shared_ray
from raysim.actors.code_shipping import modules
from raysim.actors.following import follow
from raysim.actors.fork_server import ForkServer, libraries_of_given
from raysim.actors.own_ray import OwnRay
from raysim.actors.ray_start import start_ray
from raysim.actors.sending import check_sendable
from raysim.actors.shared_ray import Connection, Request
from raysim.actors.side_processes import SideProcesses
from raysim.actors.watch import Watch
from raysim.driver.outcome import Outcome
from raysim.engine.observer import Forwarding, heard_by, step
from raysim.errors import ConfigError, PlacementError
from raysim.storage.checkpoint import newest_first
from raysim.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.engine.observer import Observer

LOOK = 0.2
"""Seconds between two looks at whether the run is to stop and whether Ray is still there."""
SAVING = 20.0
"""Largest number of seconds that a run which an error ends here waits for its driver to save the last whole round."""
ENOUGH = 3.0
"""Largest number of seconds that a dropped run waits for its driver to end."""


class Relay(Forwarding):
    """Queues its calls until the thread that shows them fetches them.

    Args:
        heard: those of ``COSTLY`` that who listens there wants.
        side: Ray's processes that begin after the first clients are done.
    """

    def __init__(self, heard: Collection[str], side: SideProcesses | None) -> None:
        self.heard = heard
        self._side = side
        self.calls: SimpleQueue[tuple[str, tuple[Any, ...]]] = SimpleQueue()

    def tell(self, name: str, *arguments: Any) -> None:
        """Queue the call."""
        self.calls.put((name, arguments))
        if self._side is not None and name in ("clients_done", "round_finished"):
            self._side.go_on_soon()


def sent_code(config: RunConfig) -> tuple[Any, ...]:
    """The modules of the user's own that a cluster is sent when it is joined from outside; else none."""
    return tuple(modules(config)) if config.engine.address.startswith(cluster_probe.CLIENT) else ()


def signal_handlers() -> dict[int, Any]:
    """Handlers of the signals that end a run, to be set again: Ray's C++ code takes some for itself while it starts.

    Empty outside the main thread, which alone can set them.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}


def run_on_ray(  # noqa: PLR0913 - as execute, which calls it
    config: RunConfig,
    folder: Path,
    observer: Observer,
    ended: Callable[[str], None] = lambda status: None,
    *,
    verbose: bool = False,
    stopping: Callable[[], bool] = lambda: False,
    keep: bool = False,
) -> Outcome:
    """Drive a run on Ray; a driver that dies is started again and goes on from its last checkpoint.

    ``ended`` is told the run's status before Ray is let go of.

    All calls of Ray's are made by a thread of their own. This one watches it, so that it can end the run whatever
    becomes of Ray. With ``keep`` the next run of this process finds the same Ray (shared_ray.py).
    """
    watch = Watch(config.engine.heartbeat_limit)
    stop, dropped = threading.Event(), threading.Event()
    where, dashboard = config.engine.address, config.engine.dashboard
    request = Request(where, dashboard, verbose, sent_code(config))
    kept = shared_ray.take(request)
    own, side = (kept.own, kept.side) if kept is not None else (None, None)
    if kept is None and where == "local" and not shared_ray.is_connected():
        own = OwnRay(ForkServer(libraries_of_given()))
        side = None if verbose else SideProcesses(dashboard)
    relay = Relay(heard_by(observer), side)
    made: list[Connection] = [] if kept is None else [kept]

    def work() -> Outcome:
        if kept is None:
            try:
                made.extend(_connect(config, request, relay, watch, own=own, side=side))
            except PlacementError as error:
                return Outcome("failed", str(error))
            except ConfigError as error:
                return Outcome("failed", str(error), refused=True)
        elif dashboard:
            _introduce(relay, kept.dashboard, side)
        watch.own = own
        return follow(config, folder, relay, stop.is_set, dropped.is_set, watch)

    future = shared_ray.submit(work)
    sound = False
    try:
        outcome = _wait(future, relay, observer, watch, stop, stopping)
        ended(outcome.status)
        gone = watch.what_is_gone() if outcome.status == "failed" else ""
        sound = future.done() and not gone
        if not future.done() and not watch.joining:  # where a cluster was not joined, its own advice stands
            gone = gone or outcome.message
        return Outcome("failed", f"{gone}. {_kept(folder)}") if gone else outcome
    except BaseException as error:
        gone = watch.what_is_gone()
        if gone and isinstance(error, Exception):  # as Ray's calls raise in one way or another when a part is gone
            return Outcome("failed", f"{gone}. {_kept(folder)}")
        if not gone and (folder / "rounds.csv").exists():  # the observer's error, or Ctrl-C: whole rounds are saved
            stop.set()
            wait([future], SAVING)
        raise
    finally:
        dropped.set()
        if sound and made and (keep or kept is not None):
            shared_ray.keep(made[0])
        else:
            _clean_up(future, own, bool(made), ENOUGH if watch.own is not None or own is None else 0.0)


def _connect(
    config: RunConfig, request: Request, relay: Relay, watch: Watch, *, own: OwnRay | None, side: SideProcesses | None
) -> list[Connection]:
    """Start or join a Ray, and say where its dashboard is; no connection of ours if this process had one before."""
    others, where = shared_ray.is_connected(), request.address
    if where != "local" and not others:
        watch.joins(where)
    with step(relay, "starting Ray" if where == "local" else f"joining the Ray cluster at {where}"):
        started_here, url = start_ray(
            config.engine,
            verbose=request.verbose,
            code=request.code,
            check=lambda: check_sendable(config),
            side=side,
            forks=None if own is None else own.forks,
        )
    if own is not None:
        own.started()
    _introduce(relay, url, side, started_here)
    if others:
        return []
    store = "" if own is None else shared_ray.control_store()
    # What starts Ray sets variables of this process's environment, which the next run's request will have.
    return [Connection(Request(where, request.dashboard, request.verbose, request.code), own, url, side, store)]


def _introduce(observer: Relay, dashboard: str, side: SideProcesses | None, started_here: bool = False) -> None:
    """Say where the dashboard is, once it is up, and that a Ray was started although there is a cluster."""
    if started_here and "RAY_ADDRESS" in os.environ:  # as in every job of a cluster
        observer.note(
            "this run is on a Ray of its own, on this machine alone; the cluster that RAY_ADDRESS names is used "
            "with --engine.address auto"
        )
    if side is not None:
        side.introduce(partial(_tell_dashboard, observer))
    elif dashboard:
        _tell_dashboard(observer, dashboard)


def _tell_dashboard(observer: Relay, dashboard: str) -> None:
    hint = ", which asks for the token that `ray get-auth-token` prints"
    observer.note(f"Ray dashboard: http://{dashboard}{hint if cluster_probe.asks_for_token() else ''}")


def _wait(
    future: Future[Outcome],
    relay: Relay,
    observer: Observer,
    watch: Watch,
    stop: threading.Event,
    stopping: Callable[[], bool],
) -> Outcome:
    """Show the run's events until it has ended or something that it needs is gone."""
    handlers = signal_handlers()
    future.add_done_callback(lambda _: relay.calls.put(("", ())))
    while True:
        with suppress(Empty):
            name, arguments = relay.calls.get(timeout=LOOK)
            if not name:
                return future.result()
            getattr(observer, name)(*arguments)
        if watch.own is not None or watch.driver:
            while handlers:  # set again, once
                signal.signal(*handlers.popitem())
        if stopping():
            stop.set()
        if gone := watch.look():
            return Outcome("failed", gone)


def _kept(folder: Path) -> str:
    """A sentence on what is left of a run that ended because something it needs is gone."""
    if newest_first(RunFolder(folder).checkpoints):
        return "The last checkpoint is kept"
    if (folder / "rounds.csv").exists():
        return "No checkpoint had been written: it begins again with round 1"
    return "No checkpoint had been written: start the run again"


def _clean_up(future: Future[Outcome], own: OwnRay | None, connected: bool, seconds: float) -> None:
    """Let go of the driver, and end the Ray that was started here or leave the one that was joined; by force if needed.

    Args:
        connected: whether a run of raysim made the connection.
        seconds: that the driver has to end.
    """
    if wait([future], seconds).done:
        if own is not None or connected:
            shared_ray.shut_down(own)
        return
    if own is not None:
        own.end()
    shared_ray.give_up()
