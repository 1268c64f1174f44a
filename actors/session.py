"""From the launching process: start or join Ray, start the driver, follow it, and outlive its death."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors import reaching
from actors.shipping import modules
from actors.starting import patiently
from raysim.errors import PlacementError
from raysim.observer import step
from raysim.outcome import Outcome

if TYPE_CHECKING:
    from raysim.config import Engine, RunConfig
    from raysim.observer import Observer

RESTARTS = 3
"""A driver that dies this often without finishing a round in between is given up."""
QUICK_START = {
    # A raylet's first try to reach its own object store comes too early as a rule, and by default it sleeps a second
    # before the next. As many tries as make the same ten seconds.
    "RAY_raylet_client_connect_timeout_milliseconds": "50",
    "RAY_raylet_client_num_connect_attempts": "200",
    # ray.init would wait for a worker process on every core, of which not all are used; actors start theirs anyway.
    "RAY_prestart_worker_first_driver": "0",
    # Of so many tasks it keeps the history, about 2 KB each; by default of 100,000.
    "RAY_task_events_max_num_task_in_gcs": "10000",
}
"""Environment of a Ray that is started here (measured by benchmarks/startup.py)."""
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""At 0, all ports of a Ray that is started here are open on 127.0.0.1 only: on Linux too, despite its name. Ray reads
it when it is imported: who did so before gets a Ray that listens elsewhere too, though only to those with the token."""
HEAD = "node:__internal_head__"
"""A resource that every cluster's head has, and only that."""


def start_ray(engine: Engine, *, verbose: bool = False, code: Sequence[str] = ()) -> tuple[bool, str]:
    """Start Ray on this machine, or join the cluster at ``engine.address``.

    ``code`` are folders and files of Python modules that are sent to the nodes, if the cluster is joined from outside.

    Returns:
        Whether it was started here, and the dashboard's host and port ("" if there is none).

    Raises:
        PlacementError: Ray cannot start or the cluster cannot be reached.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is ever sent that was not asked for
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if "ray" in sys.modules and sys.modules["ray"].is_initialized():
        return False, ""
    local = engine.address == "local"
    options: dict[str, Any] = {}
    reaching.use_token(local)
    if local:
        reaching.check_loopback()
        options["include_dashboard"] = engine.dashboard
        for name, value in QUICK_START.items():
            os.environ.setdefault(name, value)
    elif code:
        options["runtime_env"] = {"py_modules": list(code)}
    unset = local and LOOPBACK not in os.environ
    if unset:
        os.environ[LOOPBACK] = "0"
    import ray

    address = engine.address if engine.address != "auto" else reaching.of_environment()
    if ":" in address:
        reaching.check(address)
    options |= {"log_to_driver": verbose, "logging_level": logging.INFO if verbose else logging.ERROR}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        context = patiently(lambda: ray.init(address=engine.address, **options))
    except Exception as error:
        what = "Ray could not start on this machine" if local else f"no Ray cluster answers at {engine.address}"
        hint = "start one (`ray start --head`), or leave --engine.address out to use this machine"
        if local:
            hint = (
                "look for another Ray that is half running (`ray stop`), for free memory and disk under /tmp/ray, or "
                "run without Ray: --engine.backend inline"
            )
        elif isinstance(error, ray.exceptions.AuthenticationError):
            hint = reaching.TOKEN_HINT
        raise PlacementError(f"{what}: {type(error).__name__}: {error}. Next: {hint}") from error
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():  # Ray takes SIGTERM for itself, in Python and in C++
                signal.signal(number, handler)
        if unset:  # it is for this Ray, not for whatever else this process starts
            del os.environ[LOOPBACK]
    return local, str(context.dashboard_url or "")


def run_on_ray(
    config: RunConfig,
    folder: Path,
    observer: Observer,
    *,
    verbose: bool = False,
    stopping: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Drive a run on Ray; a driver that dies is started again and goes on from its last checkpoint."""
    try:
        code = modules(config) if config.engine.address.startswith(reaching.CLIENT) else ()
        where = config.engine.address
        with step(observer, "starting Ray" if where == "local" else f"joining the Ray cluster at {where}"):
            started_here, dashboard = start_ray(config.engine, verbose=verbose, code=code)
    except PlacementError as error:
        return Outcome("failed", str(error))
    import ray

    try:
        if started_here and "RAY_ADDRESS" in os.environ:  # as in every job of a cluster
            observer.note(
                "this run is on a Ray of its own, on this machine alone; the cluster that RAY_ADDRESS names is used "
                "with --engine.address auto"
            )
        if dashboard:
            asks = ", which asks for the token that `ray get-auth-token` prints" if reaching.asks_for_token() else ""
            observer.note(f"Ray dashboard: http://{dashboard}{asks}")
        return _follow(config, folder, observer, stopping)
    finally:
        if started_here:
            ray.shutdown()


def _follow(config: RunConfig, folder: Path, observer: Observer, stopping: Callable[[], bool]) -> Outcome:
    import ray
    from ray.exceptions import RayActorError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from actors.driver import DriverActor

    options: dict[str, Any] = {"num_cpus": 0, "namespace": f"raysim-{uuid.uuid4().hex[:12]}"}
    if config.engine.address.startswith(reaching.CLIENT):  # a worker may be taken away, the head stays
        options["resources"] = {HEAD: 0.001}
    else:  # this process, and the run folder, are on a node
        here = ray.get_runtime_context().get_node_id()
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(here, soft=False)
    started, lives, furthest = 0, 0, 0
    while True:
        started += 1
        options["name"] = f"driver of {folder.name}" + (f" (life {started})" if started > 1 else "")
        observer.preparing("starting the driver", 0, 1)  # until it says itself what it does
        driver = DriverActor.options(**options).remote(config, str(folder))  # type: ignore[attr-defined]
        outcome = driver.run.remote()
        position, told = 0, False
        try:
            while True:
                coming = driver.events.remote(position, 0.5)
                ray.wait([outcome, coming])
                finished, _ = ray.wait([outcome], timeout=0)
                events = ray.get(driver.events.remote(position, 0.0) if finished else coming)
                for name, arguments in events:
                    getattr(observer, name)(*arguments)
                    # Rounds that a new driver does again are no progress: one that always dies in the same round ends.
                    if name == "round_finished" and arguments[0]["round"] > furthest:
                        lives, furthest = 0, arguments[0]["round"]
                position += len(events)
                if finished:
                    result: Outcome = ray.get(outcome)
                    return result
                if stopping() and not told:
                    observer.note("stopping: the round in flight is dropped, the last whole round is saved")
                    driver.stop.remote()
                    told = True
        except RayActorError as error:
            lives += 1
            if lives >= RESTARTS:
                return Outcome("failed", f"the driver died {RESTARTS} times without finishing a round: {error}")
            observer.fault("the driver died; a new one goes on from the last checkpoint")
        finally:
            ray.kill(driver)  # also one that is only out of reach: two must never write one folder
