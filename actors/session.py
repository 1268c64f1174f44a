"""From the launching process: start or join Ray, start the driver, follow it, and outlive its death."""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.errors import PlacementError
from raysim.outcome import Outcome

if TYPE_CHECKING:
    from raysim.config import Engine, RunConfig
    from raysim.observer import Observer

RESTARTS = 3
"""A driver that dies this often without finishing a round in between is given up."""
CONNECT_SECONDS = 10.0
ENVIRONMENT = {
    # A raylet's first try to reach its own object store comes too early as a rule, and by default it sleeps a second
    # before the next. As many tries as make the same ten seconds.
    "RAY_raylet_client_connect_timeout_milliseconds": "50",
    "RAY_raylet_client_num_connect_attempts": "200",
    # ray.init would wait for a worker process on every core, of which not all are used; actors start theirs anyway.
    "RAY_prestart_worker_first_driver": "0",
    # Of so many tasks it keeps the history, about 2 KB each; by default of 100,000.
    "RAY_task_events_max_num_task_in_gcs": "10000",
}
"""Environment of a Ray that is started here (its start is measured by benchmarks/startup.py)."""


def start_ray(engine: Engine, *, verbose: bool = False) -> tuple[bool, str]:
    """Start Ray on this machine, or join the cluster at ``engine.address``.

    Returns:
        Whether it was started here, and the dashboard's host and port ("" if there is none).

    Raises:
        PlacementError: Ray cannot start or the cluster cannot be reached.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is ever sent that was not asked for
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    if ray.is_initialized():
        return False, ""
    local = engine.address == "local"
    if ":" in engine.address:
        _check_reachable(engine.address)
    options: dict[str, Any] = {"include_dashboard": engine.dashboard} if local else {}
    if local:
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
    try:
        context = ray.init(
            address=engine.address,
            log_to_driver=verbose,
            logging_level=logging.INFO if verbose else logging.ERROR,
            **options,
        )
    except Exception as error:
        what = "Ray could not start on this machine" if local else f"no Ray cluster answers at {engine.address}"
        hint = (
            "look for another Ray that is half running (`ray stop`), for free memory and disk under /tmp/ray, or run "
            "without Ray: --engine.backend inline"
            if local
            else "start one (`ray start --head`), or leave --engine.address out to use this machine"
        )
        raise PlacementError(f"{what}: {type(error).__name__}: {error}. Next: {hint}") from error
    return local, str(context.dashboard_url or "")


def _check_reachable(address: str) -> None:
    """Ray itself tries for five minutes and more before it gives up."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise PlacementError(
            f"no Ray cluster answers at {address}: {error}. Next: start one (`ray start --head`), or leave "
            "--engine.address out to use this machine"
        ) from error


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
        started_here, dashboard = start_ray(config.engine, verbose=verbose)
    except PlacementError as error:
        return Outcome("failed", str(error))
    import ray

    try:
        if dashboard:
            observer.note(f"Ray dashboard: http://{dashboard}")
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
    if not config.engine.address.startswith("ray://"):  # then this process, and the run folder, are on a node
        here = ray.get_runtime_context().get_node_id()
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(here, soft=False)
    started, lives, furthest = 0, 0, 0
    while True:
        started += 1
        options["name"] = f"driver of {folder.name}" + (f" (life {started})" if started > 1 else "")
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
