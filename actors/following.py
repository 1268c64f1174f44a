"""From the thread that talks to Ray: start the driver, pass on what it tells, and outlive its death."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.actors import cluster_probe
from raysim.actors.capacity import useful_actors
from raysim.actors.fork_server import libraries_of_given
from raysim.actors.sending import check_sendable
from raysim.actors.watch import Watch
from raysim.driver.outcome import Outcome
from raysim.errors import ConfigError
from raysim.exchange.profile_marks import now

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig

RESTARTS = 3
"""Largest number of driver deaths in a row without a finished round in between."""
HEAD = "node:__internal_head__"
"""Name of the Ray resource that only the head of a cluster has."""
PROBE = 5.0
"""Seconds between two questions to Ray's control store."""


def follow(  # noqa: PLR0915 - one loop over the driver's lives, whose state is in its locals
    config: RunConfig,
    folder: Path,
    observer: Any,
    stopping: Callable[[], bool],
    dropped: Callable[[], bool],
    watch: Watch,
) -> Outcome:
    """Start the driver, again after each of its deaths, and pass on what it tells.

    Args:
        dropped: tells whether the outcome is no longer wanted.
    """
    import ray
    from ray.exceptions import OutOfMemoryError, RayActorError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from raysim.actors.driver import DriverActor

    try:
        check_sendable(config)
    except ConfigError as error:
        return Outcome("failed", str(error), refused=True)
    options: dict[str, Any] = {"num_cpus": 0, "namespace": f"raysim-{uuid.uuid4().hex[:12]}"}
    outside = config.engine.address.startswith(cluster_probe.CLIENT)
    if outside:  # a worker may be taken away, the head stays
        options["resources"] = {HEAD: 0.001}
    else:  # this process, and the run folder, are on a node
        here = ray.get_runtime_context().get_node_id()
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(here, soft=False)
    if watch.own is None:
        named = config.engine.address if ":" in config.engine.address else ""
        watch.head = named or ray.get_runtime_context().gcs_address
        listening = (watch, dropped, config.engine.heartbeat_limit)
        threading.Thread(target=_listen_to_head, args=listening, name="head of the cluster", daemon=True).start()
    early = (config.engine, useful_actors(config), libraries_of_given())
    started, lives, furthest = 0, 0, 0
    while True:
        started += 1
        options["name"] = f"driver of {folder.name}" + (f" (life {started})" if started > 1 else "")
        observer.preparing("starting the driver", 0, 1)  # until it says itself what it does
        driver = DriverActor.options(**options).remote(early, str(folder), observer.heard)  # type: ignore[attr-defined]
        driver.begin.remote()
        outcome, identity = driver.run.remote(config), driver.process.remote()
        position, told, probed = 0, False, 0.0
        watch.driver_starts()
        try:
            while not dropped():
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
                if now() - probed > PROBE:
                    ray.nodes()  # which the control store answers
                    probed = now()
                if identity is not None and not outside and ray.wait([identity], timeout=0)[0]:
                    watch.driver, identity = ray.get(identity), None
                watch.heard()
                if finished:
                    result: Outcome = ray.get(outcome)
                    return result
                if stopping() and not told:
                    observer.note("stopping: the round in flight is dropped, the last whole round is saved")
                    driver.stop.remote()
                    told = True
            return Outcome("stopped")
        except RayTaskError as error:  # before the driver's own code, which turns what fails into an outcome
            reason = str(error.cause or error).strip().splitlines()[-1]
            return Outcome("failed", f"the run's settings cannot be read in Ray's processes: {reason}", str(error))
        except (RayActorError, OutOfMemoryError) as error:
            lives += 1
            if lives >= RESTARTS:
                reason = str(error).strip().splitlines()[0]  # below it Ray lists all processes of the machine
                return Outcome("failed", f"the driver died {RESTARTS} times without finishing a round: {reason}")
            observer.fault("the driver died; a new one goes on from the last checkpoint")
        finally:
            ray.kill(driver)  # also one that is only out of reach: two must never write one folder


def _listen_to_head(watch: Watch, dropped: Callable[[], bool], limit: float) -> None:
    """Ask the head of the cluster that was joined, until the run is over: Ray's own calls may wait for it for ever.

    Args:
        limit: seconds without an answer after which the run ends, in which it is asked several times; 0: no limit.
    """
    pause = min(PROBE, limit / 4) if limit else PROBE
    while not dropped():
        if cluster_probe.answers(watch.head):
            watch.head_heard()
        time.sleep(pause)
