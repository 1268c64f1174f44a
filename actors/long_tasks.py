"""Functions as Ray tasks that may take hours, on whatever node has room for them: cells of a study."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection
from types import TracebackType
from typing import TYPE_CHECKING, Any

from raysim.actors import shared_ray
from raysim.actors.capacity import room
from raysim.actors.fork_server import ForkServer
from raysim.actors.own_ray import OwnRay
from raysim.actors.ray_start import start_ray
from raysim.actors.session import sent_code, signal_handlers
from raysim.actors.shared_ray import Connection, Request
from raysim.errors import PlacementError, RaysimError
from raysim.units import counted

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig

OPTIONS = {"CPU": "engine.threads", "GPU": "engine.gpus_per_client"}
"""Kind of resource → the option of a run that says how much of it a task takes."""
RETRIES = 2
"""Times that a task is sent again whose process or node died."""


class LongTasks:
    """A context manager with Ray started, or joined at ``engine.address``, for tasks of this process.

    Args:
        config: whose Ray, and whose code for a cluster that is joined from outside.

    Raises:
        PlacementError: Ray cannot start, or the cluster cannot be reached.
    """

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._connection: Connection | None = None

    def __enter__(self) -> LongTasks:
        engine = self._config.engine
        code = sent_code(self._config)
        request = Request(engine.address, engine.dashboard, False, code)
        self._connection = shared_ray.take(request)
        if self._connection is not None or shared_ray.is_connected():
            return self
        forks = ForkServer() if engine.address == "local" else None
        own = None if forks is None else OwnRay(forks)
        handlers = signal_handlers()
        try:
            _, url = shared_ray.submit(lambda: start_ray(engine, code=code, forks=forks)).result()
        except BaseException:
            if own is not None:
                own.end()
            raise
        finally:
            for number, handler in handlers.items():  # set again: Ray takes some for itself while it starts
                signal.signal(number, handler)
        if own is not None:
            own.started()
        self._connection = Connection(request, own, url)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            shared_ray.keep(self._connection)  # it ends with the process

    def cores(self) -> int:
        """The cores of the cluster at present, at least 1."""
        return max(1, self.room(1, 0))

    def room(self, cpus: float, gpus: float) -> int:
        """How many tasks with these resources the cluster can do at a time at present."""
        return room(self.nodes(), _wanted(cpus, gpus))

    def check(self, name: str, cpus: float, gpus: float) -> None:
        """Check that the cluster can do a task with these resources, which would wait for ever otherwise.

        Raises:
            PlacementError: no node has as much.
        """
        nodes, wanted = self.nodes(), _wanted(cpus, gpus)
        if not room(nodes, wanted):
            takes = " and ".join(f"{amount:g} {kind} ({OPTIONS[kind]})" for kind, amount in wanted.items())
            most = " and ".join(
                f"{max((node.get(kind, 0.0) for node in nodes), default=0):g} {kind}" for kind in wanted
            )
            raise PlacementError(
                f"{name}: it takes {takes}, and no node of the cluster has that: of {counted(len(nodes), 'node')} none "
                f"has more than {most}. Lower {' or '.join(OPTIONS[kind] for kind in wanted)}, or add a node"
            )

    def nodes(self) -> list[dict[str, float]]:
        """The resources of each node of the cluster at present."""
        from raysim.actors.slots import alive_nodes

        return list(shared_ray.submit(alive_nodes).result().values())

    def send(self, name: str, cpus: float, gpus: float, function: Callable[..., Any], *arguments: Any) -> Any:
        """Send a task; a reference to what it returns."""
        import ray

        task: Any = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)(function)
        return shared_ray.submit(lambda: task.options(name=name).remote(*arguments)).result()

    def returned(self, references: Collection[Any], seconds: float) -> dict[Any, Any]:
        """Wait for a moment; what has returned since, by its reference.

        A task that could not be done has a RaysimError in the place of its value.
        """
        import ray

        def look() -> dict[Any, Any]:
            ready, _ = ray.wait(list(references), num_returns=len(references), timeout=seconds)
            return {reference: _value(reference) for reference in ready}

        return shared_ray.submit(look).result()


def _wanted(cpus: float, gpus: float) -> dict[str, float]:
    """The resources of a task, as Ray names them."""
    return {kind: amount for kind, amount in (("CPU", cpus), ("GPU", gpus)) if amount}


def _value(reference: Any) -> Any:
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        return RaysimError(str(error.cause))
    except ray.exceptions.RayError as error:
        reason = str(error).partition("\n")[0]
        return RaysimError(f"its process or node died {RETRIES + 1} times: {reason}")
