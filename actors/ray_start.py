"""Starts Ray on this machine, or joins a cluster, with what makes its start short and its ports private."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

from raysim.actors import cluster_probe, private_places, shared_ray
from raysim.actors.start_retry import patiently
from raysim.errors import ConfigError, PlacementError

if TYPE_CHECKING:
    from raysim.actors.fork_server import ForkServer
    from raysim.actors.side_processes import SideProcesses
    from raysim.config.run_config import Engine

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
LOOK = 0.02
"""Seconds between two looks at whether Ray's node is there."""
UP = 30.0
"""Seconds after which Ray's own call is left to wait for it."""


def start_ray(
    engine: Engine,
    *,
    verbose: bool = False,
    code: Sequence[str] = (),
    check: Callable[[], None] = lambda: None,
    side: SideProcesses | None = None,
    forks: ForkServer | None = None,
) -> tuple[bool, str]:
    """Start Ray on this machine, or join the cluster at ``engine.address``.

    ``code`` are folders and files of Python modules that are sent to the nodes, if the cluster is joined from outside.
    ``check`` is called once Ray is imported, and before it takes its seconds to start. With ``side`` the processes that
    no client task needs are held from their start on. With ``forks`` workers are forked from that server.

    Returns:
        Whether it was started here, and the dashboard's host and port ("" if there is none, or none yet).

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
    if local and forks is not None:
        forks.start()  # it imports beside this process
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
        with (
            nodes_seen_at_once() if local else nullcontext(),
            side.held(options) if local and side is not None else nullcontext(),
            forks.serving() if local and forks is not None else nullcontext(),
        ):
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


@contextmanager
def nodes_seen_at_once() -> Iterator[None]:
    """Have ``ray.init`` ask for its new node when it is there: Ray's own call sleeps a second if it comes too early."""
    from ray._private import services, state  # the one place where it can be set after ray has been imported

    given = services.get_node

    def get_node(address: str, node: str) -> Any:
        nodes = state.GlobalState()
        nodes._initialize_global_state(services._get_gcs_client_options(address))
        end = time.monotonic() + UP
        while time.monotonic() < end and all(found["NodeID"] != node for found in nodes.node_table()):
            time.sleep(LOOK)
        return given(address, node)  # type: ignore[no-untyped-call]

    services.get_node = get_node
    try:
        yield
    finally:
        services.get_node = given


@cache
def _silence_threads_of_ray() -> None:
    """Leave out the tracebacks of Ray's own threads, which end when a head is gone: the run says that it is."""
    before = threading.excepthook

    def tell(found: threading.ExceptHookArgs) -> None:
        if found.thread is None or not found.thread.name.startswith("ray_"):
            before(found)

    threading.excepthook = tell
