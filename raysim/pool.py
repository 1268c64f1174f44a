"""The seam between the round loop and whatever runs its tasks.

``rounds.py`` knows only this protocol; ``inline.py`` and ``actors/pool.py`` implement it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from raysim.profile import Recorder
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
    """What it is for a person: ``train client 7 in round 12``."""


@dataclass(frozen=True)
class Done:
    """A finished job."""

    index: int
    result: Any
    outputs: tuple[Any, ...]
    """Handles of the returned states."""
    seconds: float
    """How long the worker was busy with it."""
    started: float
    """When it began, on the worker's :func:`raysim.clock.now`."""
    sent: float
    """When the driver sent it, on the driver's."""
    slot: int = 0
    """Which of the pool's slots did it."""


class Pool(Protocol):
    """Runs jobs on workers; which worker and in which order cannot matter to the results."""

    recorder: Recorder
    """Is told what the pool does; :data:`raysim.profile.OFF` unless it is set."""

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
