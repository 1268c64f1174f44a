"""The seam between the round loop and whatever runs its tasks.

``rounds.py`` knows only this protocol; ``inline.py`` and ``actors/pool.py`` implement it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from raysim.worker import Worker

CALLS_PER_SLOT = 8
"""With more clients than so many a slot, neighbours share one remote call."""


def block_size(clients: int, slots: int) -> int:
    """How many neighbouring clients share one remote call: a power of two, which :class:`PairwiseSum` asks for.

    Small enough to keep every slot busy to the end of the round, large enough that calls cost less than visits.
    """
    neighbours = clients // (CALLS_PER_SLOT * slots)
    return 1 << (neighbours.bit_length() - 1) if neighbours else 1


def cut(clients: Sequence[int], size: int) -> list[list[int]]:
    """Blocks of ``size`` neighbouring clients, in order; the last one may be shorter."""
    return [list(clients[start : start + size]) for start in range(0, len(clients), size)]


class Task(Protocol):
    """One remote call, as plain data that runs on any worker and always gives the same bits.

    What is large (parameters, a client's kept state) comes beside it as ``inputs``, so that a pool can hand it over
    without a copy; it gives a small result and, apart from it, states that stay where they are until needed.
    """

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[Any, list[Any]]: ...


@dataclass(frozen=True)
class Job:
    """A task, its large inputs (handles of :meth:`Pool.share`, or small values as they are) and its expected cost."""

    task: Task
    inputs: tuple[Any, ...]
    outputs: int = 0
    """How many states the task returns beside its result."""
    cost: float = 1.0
    """Relative length, longest first."""
    label: str = ""
    """What it is for a person who reads of its failure: ``round 12, clients [7]``."""
    name: str = "task"
    """What a cluster's pages call it: ``train[round 12]``, one a round, since each name is a time series."""


@dataclass(frozen=True)
class Seat:
    """Where a job ran; for people and metrics, never for results."""

    slot: int
    """Which of the pool's places, from 0; a replaced actor keeps it."""
    node: str
    """Address of the machine."""
    process: int
    device: str
    """``cpu``, or the number of the GPU as ``cuda:0``."""
    gpu_bytes: int = 0
    """Most GPU memory that torch held in this process so far."""


@dataclass(frozen=True)
class Done:
    """A finished job."""

    index: int
    result: Any
    outputs: tuple[Any, ...]
    """Handles of the returned states."""
    seconds: float
    """How long the worker was busy with it."""
    seat: Seat
    sends: int = 1
    """How often it was sent: more than once if what held it died."""


class Pool(Protocol):
    """Runs jobs on workers; which worker and in which order cannot matter to the results."""

    @property
    def slots(self) -> int:
        """How many jobs run at the same time."""
        ...

    @property
    def plan(self) -> str:
        """One line that says where clients run."""
        ...

    def share(self, value: Any) -> Any:
        """Store a value once for all workers; the handle may stand among a job's inputs."""
        ...

    def fetch(self, handle: Any) -> Any:
        """The value behind a handle."""
        ...

    def run(
        self, jobs: Sequence[Job], note: Callable[[str], None], stopping: Callable[[], bool] = lambda: False
    ) -> Generator[Done, None, None]:
        """Run all jobs and yield them as they finish, each once; faults that were mended are told to ``note``.

        Once ``stopping`` says so, or when the generator is closed early, what is still running is dropped.
        """
        ...

    def close(self) -> None:
        """Give everything back."""
        ...
