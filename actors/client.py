"""ClientActor: a process with one worker in it, pinned to CPU cores or to a fraction of a GPU."""

from __future__ import annotations

import os
from typing import Any

import ray

from raysim.clock import now


@ray.remote
class ClientActor:
    """Serves visits of any client, one at a time.

    Args:
        config: the run's settings.
        federation: the data; one copy a node in the object store, read without copying it.
        threads: torch and BLAS threads of a visit.
    """

    def __init__(self, config: Any, federation: Any, threads: int) -> None:
        import threadpoolctl
        import torch

        from raysim.worker import Worker

        threadpoolctl.threadpool_limits(threads)
        torch.set_num_threads(threads)
        self._worker = Worker(config, federation, "cuda" if config.engine.gpus_per_client else "cpu")

    def run(self, task: Any, *inputs: Any) -> Any:
        """Do one task; its result with its start and the busy seconds, then the states it returns, as objects apart."""
        started = now()
        result, outputs = task.run(self._worker, inputs)
        report = (result, started, now() - started)
        return (report, *outputs) if outputs else report

    def process(self) -> int:
        """Its process number, for faults that are made on purpose."""
        return os.getpid()
