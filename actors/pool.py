"""The Ray pool: sends jobs to client actors, and sends again what a dead actor had."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import OutOfMemoryError, RayActorError, RayError, RayTaskError

from actors.client import actor_name
from actors.placement import Placement, Starter
from raysim.clock import now
from raysim.errors import PlacementError, RaysimError, code_error
from raysim.pool import Done, Job
from raysim.profile import OFF, WAIT

if TYPE_CHECKING:
    from raysim.config import RunConfig
    from workloads.data import Federation

ATTEMPTS = 4
"""A job whose actor died this often is given up: it is then the job that kills them (memory, most likely)."""
SMALL = 16 * 1024
"""Arrays under so many bytes travel inside the call; Ray does not store such objects either."""

ROOM = 0.25
"""Share of this node's object store that results may hold; the rest is for what is on its way, and for clients' states,
which Ray moves to the disk only while nobody looks at them."""


@dataclass
class _Slot:
    """One actor (None: to be started when work comes) and the jobs sent to it that have not come back."""

    place: int
    actor: Any = None
    jobs: list[int] = field(default_factory=list)
    lives: int = 0
    """How many actors it has had."""
    prepared: Any = None
    """Reference of its `prepare`, which comes before its first job."""


@dataclass(frozen=True)
class _Call:
    """A job that was sent, which slot works on it, references of the states it returns, and when it was sent."""

    index: int
    slot: _Slot
    outputs: tuple[Any, ...]
    time: float


_Sent = dict[Any, _Call]
"""Reference of a result → its call."""


def _check_prepared(slot: _Slot) -> None:
    """An actor whose data or model cannot be had fails in every job: a new one would fail in the same way."""
    try:
        ray.get(slot.prepared)
    except RayError as error:
        raise PlacementError(f"a client actor cannot start: {error}") from error


def _object_store_bytes() -> float:
    """Capacity of the object store of the node that this process is on."""
    here = ray.get_runtime_context().get_node_id()
    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    return max(
        (node["Resources"].get("object_store_memory", 0.0) for node in nodes if node["NodeID"] == here), default=0
    )


class RayPool:
    """Client actors and the jobs among them.

    Every actor has the next call queued before the last one returns; the longest jobs go first.

    Args:
        config: the run's settings.
        federation: the data.
        placement: how many actors, and what each holds.
        starter: has started them and starts those that replace them.
        started: actors that are up already, at most so many; the others are started here.
    """

    def __init__(
        self,
        config: RunConfig,
        federation: Federation,
        placement: Placement,
        starter: Starter | None = None,
        started: Sequence[Any] = (),
    ) -> None:
        self.recorder = OFF
        self._config = config
        self._federation = ray.put(federation)
        self._starter = starter or Starter(config)
        self._slots = [_Slot(place) for place in range(placement.actors)]
        for slot, actor in itertools.zip_longest(self._slots, started):
            self._fill(slot, actor)
        self.plan = placement.describe(federation.clients)
        self.room = int(_object_store_bytes() * ROOM)

    @property
    def slots(self) -> int:
        return len(self._slots)

    def _fill(self, slot: _Slot, actor: Any = None) -> None:
        """Give the slot an actor, by default a new one, with the data."""
        slot.lives += 1
        slot.actor = actor or self._starter.start(slot.place, slot.lives)
        slot.prepared = slot.actor.prepare.remote(self._config, self._federation)

    def processes(self) -> list[int]:
        """Process numbers of the actors."""
        found: list[int] = ray.get([slot.actor.process.remote() for slot in self._slots])
        return found

    def share(self, value: Any) -> Any:
        size = getattr(value, "nbytes", None)
        return value if isinstance(size, int) and size < SMALL else ray.put(value)

    def fetch(self, handle: Any) -> Any:
        return ray.get(handle) if isinstance(handle, ray.ObjectRef) else handle

    def run(
        self, jobs: Sequence[Job], note: Callable[[str], None], stopping: Callable[[], bool] = lambda: False
    ) -> Generator[Done, None, None]:
        waiting = deque(sorted(range(len(jobs)), key=lambda index: (-jobs[index].cost, index)))
        attempts = [0] * len(jobs)
        sends = [1] * len(jobs)
        unfinished = sum(job.cost for job in jobs)
        sent: _Sent = {}
        try:
            while (waiting or sent) and not stopping():
                self._send(jobs, waiting, sent, unfinished)
                with self.recorder.phase(WAIT):
                    ready, _ = ray.wait(list(sent), num_returns=1, timeout=1.0)
                for reference in ready:
                    if reference not in sent:  # taken back together with a dead actor's other jobs
                        continue
                    call = sent[reference]
                    try:
                        with self.recorder.phase("receive"):
                            result, started, seconds, seat = ray.get(reference)
                    except (RayActorError, OutOfMemoryError) as error:
                        self._replace(call.slot, jobs, waiting, sent, attempts, sends, note, error)
                        continue
                    except RayTaskError as error:
                        _check_prepared(call.slot)
                        raise code_error(jobs[call.index].label, error.cause, str(error)) from error
                    del sent[reference]
                    call.slot.jobs.remove(call.index)
                    unfinished -= jobs[call.index].cost
                    # Sent before the result is looked at: aggregation on the driver never leaves an actor idle.
                    self._send(jobs, waiting, sent, unfinished)
                    sent_again = sends[call.index]
                    done = Done(call.index, result, call.outputs, seconds, started, call.time, seat, sent_again)
                    self.recorder.job(jobs[call.index], done)
                    yield done
        finally:
            # Left early (a stop, an error): nothing of the dropped round may go on running.
            self._drop()

    def _send(self, jobs: Sequence[Job], waiting: deque[int], sent: _Sent, unfinished: float) -> None:
        """One job to every idle actor, then one ahead to each while more than a slot's share is waiting.

        No job is sent ahead behind one that already fills its actor's fair share of what is left: it would wait there
        while other actors run out of work. ``unfinished`` is the cost of all that waits or is held.
        """
        share = unfinished / len(self._slots) * (1 + 1e-9)
        for depth in (1, 2):
            for slot in self._slots:
                enough = len(waiting) > (0 if depth == 1 else len(self._slots))
                if enough and len(slot.jobs) < depth:
                    if depth == 2 and sum(jobs[index].cost for index in (*slot.jobs, waiting[0])) > share:
                        continue
                    index = waiting.popleft()
                    job = jobs[index]
                    if slot.actor is None:
                        self._fill(slot)
                    begun = now()
                    with self.recorder.phase("send"):
                        options = slot.actor.run.options(name=job.name, num_returns=1 + job.outputs)
                        reply = options.remote(job.task, *job.inputs)
                    reference, outputs = (reply[0], tuple(reply[1:])) if job.outputs else (reply, ())
                    sent[reference] = _Call(index, slot, outputs, begun)
                    slot.jobs.append(index)

    def _replace(
        self,
        slot: _Slot,
        jobs: Sequence[Job],
        waiting: deque[int],
        sent: _Sent,
        attempts: list[int],
        sends: list[int],
        note: Callable[[str], None],
        error: Exception,
    ) -> None:
        """A new actor in the place of a dead one; its jobs wait again, at the front."""
        for reference in [r for r, call in sent.items() if call.slot is slot]:
            del sent[reference]
        if getattr(error, "actor_init_failed", False):  # a new one would fail in the same way
            raise PlacementError(f"a client actor cannot start: {error}") from error
        held = slot.jobs
        self._kill(slot)
        running = held[0]
        attempts[running] += 1
        if attempts[running] >= ATTEMPTS:
            raise RaysimError(
                f"{jobs[running].label}: its actor died {ATTEMPTS} times, most likely for want of memory ({error}). "
                "Lower --training.batch_size or --engine.actors, or raise --engine.cpus_per_client"
            ) from error
        note(f"{actor_name(slot.place)} died during {jobs[running].label}; a new one does its work again")
        for index in reversed(held):
            sends[index] += 1
            waiting.appendleft(index)

    @staticmethod
    def _kill(slot: _Slot) -> None:
        if slot.actor is not None:
            ray.kill(slot.actor)
        slot.actor, slot.jobs = None, []

    def _drop(self) -> None:
        """Forget what is in flight: busy actors go, because a running call cannot be taken back."""
        for slot in self._slots:
            if slot.jobs:
                self._kill(slot)

    def close(self) -> None:
        for slot in self._slots:
            self._kill(slot)
