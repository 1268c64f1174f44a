"""Memory that a round's benchmark takes before there is anything to train: processes, Ray and torch, and nothing else.

    python -m benchmarks.fixed_memory

- bare: the loop's process and its two workers, each with torch imported.
- ray: Ray as raysim starts it, with its dashboard, a launching process without torch, and three actors (the driver and
  two client actors) with torch imported.

Printed is the sum of all processes' proportional set sizes, as benchmarks/memory.py counts it: what is to be taken off
a system's peak in ``python -m benchmarks.rounds`` before two systems' own memory can be compared. Linux only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.memory import descendants, proportional_set_size

WORKERS = 2
SETTLES = 3.0
"""Seconds after which nothing starts any more."""


def _serve(pipe: Connection) -> None:
    import torch

    pipe.send(torch.__version__)
    pipe.recv()


def bare() -> None:
    """A loop's process and its workers."""
    import torch  # noqa: F401

    context = get_context("spawn")
    pipes = []
    for _ in range(WORKERS):
        here, there = context.Pipe()
        context.Process(target=_serve, args=(there,), daemon=True).start()
        here.recv()
        pipes.append(here)
    _report("bare")
    for pipe in pipes:
        pipe.send(None)


def with_ray() -> None:
    """A Ray cluster of one machine and its actors."""
    from raysim.actors.ray_start import start_ray
    from raysim.config.sections import Engine

    start_ray(Engine())
    import ray

    class Actor:
        def start(self) -> str:
            import torch

            return str(torch.__version__)

    remote: Any = ray.remote(num_cpus=0)(Actor)
    actors = [remote.remote() for _ in range(WORKERS + 1)]
    ray.get([actor.start.remote() for actor in actors])
    _report("ray")
    ray.shutdown()


def _report(name: str) -> None:
    time.sleep(SETTLES)
    kilobytes = sum(map(proportional_set_size, descendants(os.getpid())))
    print(f"{name}: {kilobytes / 2**20:.2f} GiB", flush=True)


SYSTEMS: dict[str, Callable[[], None]] = {"bare": bare, "ray": with_ray}


def main() -> int:
    if len(sys.argv) > 1:
        SYSTEMS[sys.argv[1]]()
        return 0
    for name in SYSTEMS:  # each in a process of its own, or torch would be counted with Ray's
        subprocess.run([sys.executable, "-m", "benchmarks.fixed_memory", name], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
