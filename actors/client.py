"""ClientActor: a process with one worker in it, pinned to CPU cores or to a fraction of a GPU."""

from __future__ import annotations

import os
import time
from typing import Any

import ray


@ray.remote
class ClientActor:
    """Serves visits of any client, one at a time.

    It starts in two steps, because importing torch takes seconds and can be done beside loading the data: the
    constructor needs no data, and :meth:`prepare` must be the first call.

    Args:
        threads: torch and BLAS threads of a visit.
    """

    def __init__(self, threads: int) -> None:
        # Before torch is imported, so that no pool of threads is ever larger than asked for. Not by a runtime_env:
        # that would need a process of its own kind, where Ray may have a fresh one at hand.
        os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(threads)
        import threadpoolctl
        import torch

        import raysim.visits  # noqa: F401  what a first task needs, while there is time

        threadpoolctl.threadpool_limits(threads)
        torch.set_num_threads(threads)

    def prepare(self, config: Any, federation: Any) -> None:
        """Make the worker.

        Args:
            config: the run's settings.
            federation: the data; one copy a node in the object store, read without copying it.
        """
        from raysim.worker import Worker

        self._worker = Worker(config, federation, "cuda" if config.engine.gpus_per_client else "cpu")

    def run(self, task: Any, *inputs: Any) -> Any:
        """Do one task; its result with the busy seconds, followed by the states it returns, as separate objects."""
        started = time.perf_counter()
        result, outputs = task.run(self._worker, inputs)
        busy = time.perf_counter() - started
        return ((result, busy), *outputs) if outputs else (result, busy)

    def process(self) -> int:
        """Its process number, for faults that are made on purpose."""
        return os.getpid()
