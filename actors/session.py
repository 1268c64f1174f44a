"""A run on Ray from the launching process: start or join Ray, start the driver, and restart it if it dies."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from raysim.actors import cluster_probe, private_places, shared_ray
from raysim.actors.code_shipping import modules
from raysim.actors.following import follow
from raysim.actors.own_ray import OwnRay
from raysim.actors.sending import check_sendable
from raysim.actors.shared_ray import Connection, Request
from raysim.actors.start_retry import patiently
from raysim.actors.watch import Watch
from raysim.driver.outcome import Outcome
from raysim.engine.observer import Forwarding, hears_of_clients, step
from raysim.errors import ConfigError, PlacementError
from raysim.storage.checkpoint import newest_first
from raysim.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from raysim.config.run_config import Engine, RunConfig
    from raysim.engine.observer import Observer

LOOK = 0.2
"""Seconds between two looks at whether the run is to stop and whether Ray is still there."""
ENOUGH = 3.0
"""Largest number of seconds that a dropped run waits for its driver to end."""
QUICK_START = {
    # A raylet's first try to reach its own object store comes too early as a rule, and by default it sleeps a second
    # before the next. As many tries as make the same ten seconds.
    "RAY_raylet_client_connect_timeout_milliseconds": "50",
    "RAY_raylet_client_num_connect_attempts": "200",
    # ray.init would wait for a worker process on every core, of which not all are used; actors start theirs anyway.
    "RAY_prestart_worker_first_driver": "0",
    # Number of tasks whose history it keeps, about 2 KB each; by default 100,000.
    "RAY_task_events_max_num_task_in_gcs": "10000",
}
"""Environment variables that make Ray start faster (measured by benchmarks/startup.py)."""
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""At 0, all ports of a Ray that is started here are open on 127.0.0.1 only: on Linux too, despite its name. Ray reads
it when it is imported: who did so before gets a Ray that listens elsewhere too, though only to those with the token."""


def start_ray(
    engine: Engine, *, verbose: bool = False, code: Sequence[str] = (), check: Callable[[], None] = lambda: None
) -> tuple[bool, str]:
    """Start Ray on this machine, or join the cluster at ``engine.address``.

    ``code`` are folders and files of Python modules that are sent to the nodes, if the cluster is joined from outside.
    ``check`` is called once Ray is imported, and before it takes its seconds to start.

    Returns:
        Whether it was started here, and the dashboard's host and port ("" if there is none).

    Raises:
        PlacementError: Ray cannot start or the cluster cannot be reached.
        ConfigError: as ``check`` raises it.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is ever sent that was not asked for
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if shared_ray.is_connected():
        return False, ""
    local = engine.address == "local"
    options: dict[str, Any] = {}
    cluster_probe.use_token(local)
    if local:
        cluster_probe.check_loopback()
        if os.environ.get(cluster_probe.MODE, "token").lower() == "token":
            private_places.make_token()
        options["include_dashboard"] = engine.dashboard
        if folder := private_places.session_folder():
            options["_temp_dir"] = folder
        for name, value in QUICK_START.items():
            os.environ.setdefault(name, value)
    elif code:
        options["runtime_env"] = {"py_modules": list(code)}
    unset = local and LOOPBACK not in os.environ
    if unset:
        os.environ[LOOPBACK] = "0"
    import ray

    address = engine.address if engine.address != "auto" else cluster_probe.of_environment()
    if ":" in address:
        cluster_probe.check(address)
    level = logging.INFO if verbose else logging.CRITICAL  # its errors, some with tracebacks, are raised as well
    options |= {"log_to_driver": verbose, "logging_level": level}
    logging.getLogger("ray").setLevel(level)  # it warns before it has read its options
    if not verbose:
        _silence_threads_of_ray()
    try:
        check()
        context = patiently(lambda: ray.init(address=engine.address, **options))
    except ConfigError:
        raise
    except Exception as error:
        what = "Ray could not start on this machine" if local else f"no Ray cluster answers at {engine.address}"
        hint = "start one (`ray start --head`), or leave --engine.address out to use this machine"
        if local:
            hint = (
                "look for another Ray that is half running (`ray stop`), for free memory and disk under /tmp, or "
                "run without Ray: --engine.backend inline"
            )
        elif isinstance(error, ray.exceptions.AuthenticationError):
            hint = cluster_probe.TOKEN_HINT
        raise PlacementError(f"{what}: {type(error).__name__}: {error}. Next: {hint}") from error
    finally:
        if unset:  # it is for this Ray, not for whatever else this process starts
            del os.environ[LOOPBACK]
    return local, str(context.dashboard_url or "")


@cache
def _silence_threads_of_ray() -> None:
    """Leave out the tracebacks of Ray's own threads, which end when a head is gone: the run says that it is."""
    before = threading.excepthook

    def tell(found: threading.ExceptHookArgs) -> None:
        if found.thread is None or not found.thread.name.startswith("ray_"):
            before(found)

    threading.excepthook = tell


class Relay(Forwarding):
    """Queues its calls until the thread that shows them fetches them.

    Args:
        clients: whether who listens there wants ``clients_finished``.
    """

    def __init__(self, clients: bool) -> None:
        self.clients = clients
        self.calls: SimpleQueue[tuple[str, tuple[Any, ...]]] = SimpleQueue()

    def tell(self, name: str, *arguments: Any) -> None:
        """Queue the call."""
        self.calls.put((name, arguments))


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


def run_on_ray(
    config: RunConfig,
    folder: Path,
    observer: Observer,
    *,
    verbose: bool = False,
    stopping: Callable[[], bool] = lambda: False,
    keep: bool = False,
) -> Outcome:
    """Drive a run on Ray; a driver that dies is started again and goes on from its last checkpoint.

    All calls of Ray's are made by a thread of their own. This one watches it, so that it can end the run whatever
    becomes of Ray. With ``keep`` the next run of this process finds the same Ray (shared_ray.py).
    """
    relay, watch = Relay(hears_of_clients(observer)), Watch(config.engine.heartbeat_limit)
    stop, dropped = threading.Event(), threading.Event()
    where, dashboard = config.engine.address, config.engine.dashboard
    code = sent_code(config)
    kept = shared_ray.take(Request(where, dashboard, verbose, code))
    own = kept.own if kept is not None else None
    if kept is None and where == "local" and not shared_ray.is_connected():
        own = OwnRay()
    made: list[Connection] = [] if kept is None else [kept]

    def work() -> Outcome:
        if kept is None:
            others = shared_ray.is_connected()
            if where != "local" and not others:
                watch.joins(where)
            try:
                with step(relay, "starting Ray" if where == "local" else f"joining the Ray cluster at {where}"):
                    started_here, url = start_ray(
                        config.engine, verbose=verbose, code=code, check=lambda: check_sendable(config)
                    )
            except PlacementError as error:
                return Outcome("failed", str(error))
            except ConfigError as error:
                return Outcome("failed", str(error), refused=True)
            if own is not None:
                own.started()
            if not others:
                made.append(Connection(Request(where, dashboard, verbose, code), own, url))
            _introduce(relay, started_here, url)
        elif dashboard:
            _introduce(relay, False, kept.dashboard)
        watch.own = own
        return follow(config, folder, relay, stop.is_set, dropped.is_set, watch)

    future = shared_ray.submit(work)
    sound = False
    try:
        outcome = _wait(future, relay, observer, watch, stop, stopping)
        gone = watch.what_is_gone() if outcome.status == "failed" else ""
        sound = future.done() and not gone
        if not future.done() and not watch.joining:  # where a cluster was not joined, its own advice stands
            gone = gone or outcome.message
        return Outcome("failed", f"{gone}. {_kept(folder)}") if gone else outcome
    except Exception:  # as Ray's calls raise in one way or another when a part of it is gone
        if gone := watch.what_is_gone():
            return Outcome("failed", f"{gone}. {_kept(folder)}")
        raise
    finally:
        dropped.set()
        if sound and made and (keep or kept is not None):
            shared_ray.keep(made[0])
        else:
            _clean_up(future, own, bool(made), ENOUGH if watch.own is not None or own is None else 0.0)


def _introduce(observer: Any, started_here: bool, dashboard: str) -> None:
    if started_here and "RAY_ADDRESS" in os.environ:  # as in every job of a cluster
        observer.note(
            "this run is on a Ray of its own, on this machine alone; the cluster that RAY_ADDRESS names is used "
            "with --engine.address auto"
        )
    if dashboard:
        hint = ", which asks for the token that `ray get-auth-token` prints"
        asks = hint if cluster_probe.asks_for_token() else ""
        observer.note(f"Ray dashboard: http://{dashboard}{asks}")


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
