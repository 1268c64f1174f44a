"""ClientActor: a process with one worker in it, pinned to CPU cores or to a fraction of a GPU; and its start."""

from __future__ import annotations

import importlib
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import ray

from raysim.actors.quick_import import garbage_collection_paused
from raysim.actors.sigterm import ends_by_sigterm
from raysim.exchange.pool_protocol import Seat
from raysim.exchange.profile_marks import Clock, clock, now, share_clock

if TYPE_CHECKING:
    from raysim.config.sections import Engine


def actor_name(slot: int) -> str:
    """Name of the actor in a slot of the pool, which is no client's name: any actor serves any client."""
    return f"client-actor-{slot:02}"


class Client:
    """Serves client tasks of any client, one at a time.

    It starts in two steps, because importing torch takes seconds and can be done beside loading the data: the
    constructor needs no data, and :meth:`prepare` must be called before :meth:`run`.

    Args:
        threads: torch and BLAS threads of a client task.
        clock: the driver's, so that what is stamped here can be laid beside what is stamped there.
        libraries: what else a first task will import.
    """

    _name = "client-actor"  # Ray also asks for it where __init__ could not be called

    def __init__(self, threads: int, slot: int, clock: Clock, libraries: Sequence[str] = ()) -> None:
        share_clock(clock)
        ends_by_sigterm()
        # Before torch is imported, so that no pool of threads is ever larger than asked for (in a forked worker it was
        # imported with one thread). Not by a runtime_env: that would need a process of its own kind.
        os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(threads)
        with garbage_collection_paused():
            import threadpoolctl
            import torch

            import raysim.client_side.train_chunk  # noqa: F401  what a first task needs, while there is time

            for library in libraries:
                importlib.import_module(library)
        from raysim.client_side.allocator import keep_freed_memory

        keep_freed_memory()

        threadpoolctl.threadpool_limits(threads)
        torch.set_num_threads(threads)
        node = ray.util.get_node_ip_address()
        self._name = actor_name(slot)
        self._seat = Seat(slot, node, os.getpid(), "cpu")

    def prepare(self, config: Any, federation: Any) -> str:
        """Make the worker, and its model while the driver makes its own; Ray's name of the node it is on.

        Args:
            federation: the data; one copy a node in the object store, read without copying it.
        """
        from raysim.client_side.device import cap_memory, device_of
        from raysim.client_side.worker import Worker

        device = device_of(config.engine)
        cap_memory(config.engine)
        self._worker = Worker(config, federation, device)
        with suppress(Exception):  # the driver says it better: it fails in the same way
            self._worker.built(0)
        if config.engine.gpus_per_client:
            self._seat = replace(self._seat, device=f"cuda:{ray.get_gpu_ids()[0]}")
        node: str = ray.get_runtime_context().get_node_id()
        return node

    def run(self, task: Any, *inputs: Any) -> Any:
        """Do one task; its result with its start, the busy seconds and the seat, then the states it returns, apart."""
        from raysim.client_side.device import run_task

        started = now()
        result, outputs = run_task(task, self._worker, inputs)
        report = (result, started, now() - started, self._where())
        return (report, *outputs) if outputs else report

    def _where(self) -> Seat:
        if self._seat.device == "cpu":
            return self._seat
        import torch

        return replace(self._seat, gpu_bytes=torch.cuda.max_memory_reserved())

    def __repr__(self) -> str:
        """The actor's name on Ray's pages and in its logs."""
        return self._name


ClientActor = ray.remote(Client)
"""The process. The class by itself is for tests, where a GPU is only counted and not there."""


class Starter:
    """Starts client actors, which are to be prepared before they get a task.

    Args:
        libraries: what each imports beside torch before that.
    """

    actor: ClassVar[Any] = ClientActor
    """The class of the processes."""

    def __init__(self, engine: Engine, libraries: Sequence[str] = ()) -> None:
        self._engine, self._libraries = engine, tuple(libraries)
        # Names must be unique within a namespace: this one is the run's own, so no other run can be in the way.
        self._namespace = f"raysim-{uuid.uuid4().hex[:12]}"

    def start(self, place: int, life: int = 1) -> Any:
        """Start an actor for a slot of the pool; ``life`` counts the actors that the slot has had."""
        # A new name for each life: for a while Ray still holds the dead actor's.
        return self.actor.options(
            name=actor_name(place) + (f" (life {life})" if life > 1 else ""),
            namespace=self._namespace,
            num_cpus=self._engine.cpus_per_client,
            num_gpus=self._engine.gpus_per_client,
        ).remote(self._engine.threads, place, clock(), self._libraries)
