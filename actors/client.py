"""ClientActor: a process with one worker in it, pinned to CPU cores or to a fraction of a GPU."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import ray

from raysim.clock import now
from raysim.pool import Seat


def actor_name(slot: int) -> str:
    """Of the actor at a place of the pool. Not a client's name: any actor serves any client."""
    return f"client-actor-{slot:02}"


@ray.remote
class ClientActor:
    """Serves visits of any client, one at a time.

    Args:
        config: the run's settings.
        federation: the data; one copy a node in the object store, read without copying it.
        threads: torch and BLAS threads of a visit.
        slot: its place in the pool.
    """

    def __init__(self, config: Any, federation: Any, threads: int, slot: int) -> None:
        import threadpoolctl
        import torch

        from raysim.worker import Worker

        threadpoolctl.threadpool_limits(threads)
        torch.set_num_threads(threads)
        self._worker = Worker(config, federation, "cuda" if config.engine.gpus_per_client else "cpu")
        gpus = ray.get_gpu_ids() if config.engine.gpus_per_client else []
        device = f"cuda:{gpus[0]}" if gpus else "cpu"
        node = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        self._seat = Seat(slot, node, os.getpid(), device)

    def run(self, task: Any, *inputs: Any) -> Any:
        """Do one task; its result with its start, the busy seconds and the seat, then the states it returns, apart."""
        started = now()
        result, outputs = task.run(self._worker, inputs)
        report = (result, started, now() - started, self._where())
        return (report, *outputs) if outputs else report

    def _where(self) -> Seat:
        if self._seat.device == "cpu":
            return self._seat
        import torch

        return replace(self._seat, gpu_bytes=torch.cuda.max_memory_reserved())

    def __repr__(self) -> str:
        """What Ray's pages and logs call it."""
        return actor_name(self._seat.slot)

    def process(self) -> int:
        """Its process number, for faults that are made on purpose."""
        return os.getpid()
