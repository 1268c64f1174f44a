"""The seam between the round loop and whatever runs its tasks.

``rounds.py`` knows only this protocol; ``inline_backend.py`` and ``actors/pool.py`` implement it.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from raysim.workloads.federated_data import Federation

Result = TypeVar("Result")
Serving = TypeVar("Serving", contravariant=True)
"""The object that serves clients: :class:`raysim.client_side.worker.Worker`."""

SHARED = 16
"""Clients per slot from which on neighbors share remote calls, while the duration of client tasks is not known."""
CALL_SECONDS = 0.02
"""Shortest planned call: each call costs some 8 ms of processor time (docs/profile.md)."""

RESULT_BYTES = 32 << 20
"""Most bytes that the clients of a chunk return: the results of all calls in flight must fit into memory."""


def cut(  # noqa: PLR0913 - all that lengths of chunks depend on, most of it rarely given
    clients: Sequence[int],
    slots: int,
    size: int = 0,
    bytes_each: int = 0,
    together: int = 1,
    costs: Sequence[float] = (),
    seconds_each: float = 0.0,
) -> list[list[int]]:
    """Cut clients into chunks of neighbors, in order; each is one remote call.

    A call costs as much as a few small tasks, so that few are best, but slots should end together: the first calls,
    one a slot, have half of the work in all, the next have half of what is left, and so on (factoring, Flynn Hummel,
    Schonberg and Flynn 1992), down to what takes CALL_SECONDS; a quarter each time where clients differ, as chunks of
    whole clients fit less well then, or nobody knows how long tasks take. That is a matter of time alone: whatever
    it is, the sums have the same bits (:class:`raysim.aggregators.means.PairwiseSum`). Lengths are rounded down to
    two or three significant bits, because chunks that begin and end at multiples of large powers of two have the
    fewest sums.

    Args:
        slots: how many calls run at a time.
        size: all of this size instead, rounded up to a multiple of ``together``.
        bytes_each: what one client adds to a call's result.
        together: clients that one call must hold, because they are trained as one.
        costs: relative length of each client's task; none: all alike.
        seconds_each: how long a task took in the round before; 0: nobody knows, then a sixteenth of a slot's clients
            are the least.
    """
    count = len(clients)
    if not size and count < SHARED * slots and not seconds_each:
        size = 1
    if size:
        size = -(-size // together) * together
        return [list(clients[start : start + size]) for start in range(0, count, size)]
    costs = costs or [1.0] * count
    before = [0.0, *itertools.accumulate(costs)]  # the cost of all clients before each
    least = math.ceil(CALL_SECONDS / seconds_each) if seconds_each else count // (SHARED * slots)
    least = max(1, min(least, count // slots))
    most = max(1, RESULT_BYTES // bytes_each) if bytes_each else count
    parts = slots * (2 if seconds_each and min(costs, default=0) == max(costs, default=0) else 4)
    start, chunks = 0, []
    while start < count:
        share = max((before[-1] - before[start]) / parts, least * before[-1] / count)
        for _ in range(slots):
            within, last = (before[start] + share) * (1 + 1e-9), min(count, start + most)
            length = _rounded(max(1, bisect.bisect_right(before, within, start, last + 1) - 1 - start), together)
            chunks.append(list(clients[start : start + length]))
            start = min(count, start + length)
    return [chunk for chunk in chunks if chunk]


def _rounded(length: int, together: int) -> int:
    """Down to two or three significant bits, in units of ``together``."""
    units = max(1, length // together)
    grain = power_of_two(units // 4)
    return units // grain * grain * together


def power_of_two(number: int) -> int:
    """The largest power of two that is not above ``number``; at least 1."""
    return 1 << max(0, number.bit_length() - 1)


def job_name(work: str, round: int) -> str:
    """Name a kind of work: ``train[round 12]``, from round 100 on ``train[rounds 120-129]``, and so on.

    Ray keeps each name that it has ever seen as a time series, 25 to 50 KB of a node's agent for good, so a long run
    must not have one a round: there are at most 90 more for each further power of ten.
    """
    several = 10 ** max(0, len(str(round)) - 2)
    if several == 1:
        return f"{work}[round {round}]"
    first = round // several * several
    return f"{work}[rounds {first}-{first + several - 1}]"


class RemoteTask(Protocol[Serving]):
    """One remote call, as plain data that runs on any worker and always gives the same bits.

    What is large (parameters, a client's state) comes beside it as ``inputs``, so that a pool can hand it over
    without a copy; it gives a small result and, apart from it, states that stay where they are until needed.
    """

    def run(self, worker: Serving, inputs: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Do it; the result, and the states that stay on the worker."""


@dataclass(frozen=True)
class Job:
    """A task, its large inputs (handles of :meth:`Pool.share`, or small values as they are) and its expected cost."""

    task: RemoteTask[Any]
    inputs: tuple[Any, ...]
    outputs: int = 0
    """How many states the task returns beside its result."""
    cost: float = 1.0
    """Relative length, longest first."""
    label: str = ""
    """Name of the job for a person who reads of its failure: ``round 12, clients [7]``."""
    name: str = "task"
    """Name of the job on a cluster's pages (:func:`job_name`)."""
    before: int = 0
    """Jobs with a smaller number go first: of tasks that run ahead, the round that takes the result."""
    about: int | None = None
    """The first client that it is about: where that was last served, its data and its neighbors' are at hand."""


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
    started: float
    """When it began, on the worker's :func:`raysim.exchange.profile_marks.now`."""
    sent: float
    """When the driver sent it, on the driver's."""
    seat: Seat
    sends: int = 1
    """How often it was sent: more than once if what held it died."""


class PhaseRecorder:
    """Is told by the round loop and by the pool what they do; this one records nothing."""

    _nothing: AbstractContextManager[None] = nullcontext()

    def round(self, number: int, slots: int) -> AbstractContextManager[None]:
        """Around all of a round; one that fails is not recorded."""
        return self._nothing

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Around something that the driver does; outermost within a round, it is a stage."""
        return self._nothing

    def job(self, job: Job, done: Done) -> None:
        """A slot has finished a job."""


OFF = PhaseRecorder()


class Pool(Protocol):
    """Runs jobs on workers; which worker and in which order cannot matter to the results."""

    recorder: PhaseRecorder
    """Is told what the pool does; :data:`OFF` unless it is set."""

    @property
    def slots(self) -> int:
        """How many jobs run at the same time."""

    @property
    def federation(self) -> Federation:
        """The clients' data as the workers read them: one copy for all processes of a node."""

    @property
    def plan(self) -> str:
        """One line that says where clients run."""

    @property
    def room(self) -> int:
        """Bytes of results that may be held at a time without crowding out what else is in the pool's memory."""

    def share(self, value: Any) -> Any:
        """Store a value once for all workers; the handle may stand among a job's inputs."""

    def fetch(self, handle: Any) -> Any:
        """The value behind a handle; LostError if it was lost with the node that held it."""

    def adapt(self) -> bool:
        """Before a round: use workers that have become possible since the last; whether the plan is another now."""

    def run(
        self, jobs: Sequence[Job], note: Callable[[str], None], stopping: Callable[[], bool] = lambda: False
    ) -> Generator[Done, None, None]:
        """Run all jobs and yield them as they finish, each once; faults that were mended are told to ``note``.

        Raises:
            LostError: what a job starts from was lost.

        Once ``stopping`` says so, or when the generator is closed early, what is still running is dropped.
        """

    def send_ahead(self, jobs: Sequence[Job]) -> None:
        """Begin these jobs beside those that are run: a later :meth:`run` of the same objects has their results.

        A pool that does nothing beside a run does nothing here.
        """

    def drop_ahead(self) -> None:
        """Drop all jobs that were sent ahead and not yet run."""

    def aside(self, function: Callable[..., Result], *arguments: Any) -> Callable[[float], Result]:
        """Call ``function(federation, *arguments)`` beside the jobs, on this machine.

        With Ray in a process that ends with it, so that what it imports costs this one no memory. The returned function
        waits at most that many seconds for its result.
        """

    def close(self) -> None:
        """Give everything back."""


def results_of(pool: Pool, jobs: Sequence[Job], note: Callable[[str], None]) -> list[Any]:
    """Run the jobs and give their results in the jobs' order."""
    return [done.result for done in sorted(pool.run(jobs, note), key=lambda done: done.index)]
