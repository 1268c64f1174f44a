"""A function over many items as Ray tasks: the parallel twin of raysim.workloads.parallel_map.Sequential."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from raysim.errors import PlacementError, RaysimError, code_error
from raysim.workloads.parallel_map import OnProgress, silent, where

Item = TypeVar("Item")
Result = TypeVar("Result")

RETRIES = 2
"""Number of retries of an item whose worker process or node died."""
WINDOW = 2
"""Items sent for each core of the cluster, so that the next is there when one ends."""


@dataclass(frozen=True)
class RayParallel:
    """Every item is a remote task of one CPU, named after the label; results are fetched as they finish.

    Items are sent in their order, ``WINDOW`` to a core: what is sent and what it returns stay few, and after a failure
    or an interruption no more than those run to their end.

    Raises:
        PlacementError: no CPU in the cluster.
        RaysimError: an item failed; label and part are named and the first traceback is with it. Or its worker died
            ``RETRIES`` + 1 times.
    """

    progress: OnProgress = silent
    make_room: Callable[[], None] | None = None
    """Called before the first item is sent, to free cores that are held without being used."""

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
        """Apply the function to every item in remote tasks; results in the order of the items."""
        if items and self.make_room is not None:
            self.make_room()
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(function).options(name=label)
        window = WINDOW * _cores(label)
        self.progress(label, 0, len(items))
        sent: dict[Any, int] = {}
        results: dict[int, Result] = {}
        coming = iter(enumerate(items))
        # What is sent is never canceled: ray.cancel of a task that ends at that moment can abort this whole process
        # (the race of ray-project/ray#54785, seen in Ray 2.60).
        while len(results) < len(items):
            for index, item in itertools.islice(coming, window - len(sent)):
                sent[task.remote(item)] = index
            ready, _ = ray.wait(list(sent), num_returns=1, timeout=1.0)
            for reference in ready:
                index = sent.pop(reference)
                results[index] = _get(reference, where(label, index, len(items)))
                self.progress(label, len(results), len(items))
        return [results[index] for index in range(len(items))]


def _cores(label: str) -> int:
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < 1:
        raise PlacementError(
            f"{label}: they need a CPU core and the cluster has none, so they would wait for ever. Start Ray with "
            "num_cpus, or add a node that has some"
        )
    return cores


def _get(reference: Any, name: str) -> Any:
    try:
        return ray.get(reference)
    except RayTaskError as error:
        raise code_error(name, error.cause, str(error)) from error
    except RayError as error:
        raise RaysimError(
            f"{name}: its worker died {RETRIES + 1} times, most likely for want of memory ({error}). Run with fewer "
            "processes on a node, or on a node with more memory"
        ) from error
