"""The Ray pool: sends jobs to client actors, and sends again what a dead, lost or frozen actor had."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import ActorUnavailableError, ObjectLostError, OutOfMemoryError, RayActorError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from raysim.actors.capacity import Placement, less_crowded, place
from raysim.actors.client import Starter
from raysim.actors.job_queue import LEAST, Deadline, Work
from raysim.actors.slots import Patience, Slot, Slots, alive_nodes
from raysim.errors import GpuMemoryError, HostMemoryError, LostError, PlacementError, RaysimError, code_error
from raysim.exchange.pool_protocol import OFF, Done, Job, Result
from raysim.exchange.profile_marks import WAIT, now
from raysim.units import counted

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation

SMALL = 16 * 1024
"""Arrays smaller than this number of bytes travel inside the call, as Ray does not store such objects either."""
LOOK = 1.0
"""Seconds between two looks at what does not announce itself: nodes that joined, actors that are late."""
ROOM = 0.25
"""Share of this node's object store that results may hold; the rest is for what is on its way, and for clients' states,
which Ray moves to the disk only while nobody looks at them."""

Note = Callable[[str], None]


class RayPool:
    """Pool of client actors on Ray that jobs are sent to.

    Every actor has the next call queued before the last one returns; the longest jobs go first.

    Args:
        useful: how many could be busy at once, if nodes join; by default no more than there are.
        starter: has started them and starts those that replace them.
        started: actors that are there already, no more than there are slots; the others are started here.
    """

    def __init__(
        self,
        config: RunConfig,
        federation: Federation,
        placement: Placement,
        useful: int = 0,
        starter: Starter | None = None,
        started: Sequence[Any] = (),
    ) -> None:
        self.recorder = OFF
        self._config, self._clients = config, federation.clients
        self._useful = useful or placement.actors
        self._slots = Slots(config, federation, starter or Starter(config.engine), placement.actors, started)
        self._work = Work()
        self._done: dict[int, Done] = {}
        """Finished jobs, by number, that were sent ahead and nobody has asked for yet."""
        self._ahead: dict[int, int] = {}
        """Numbers of the jobs that were sent ahead, by the jobs' identity."""
        self._deadline = Deadline(config.engine.task_deadline)
        self._patience = Patience(self._slots, placement.needs)
        self._looked = self._placed = now()
        self.plan, self._relieved = placement.describe(federation.clients), False
        here = ray.get_runtime_context().get_node_id()
        self.room = int(alive_nodes().get(here, {}).get("object_store_memory", 0.0) * ROOM)

    @property
    def slots(self) -> int:
        return len(self._slots)

    @cached_property
    def federation(self) -> Federation:  # fetched once: the table of clients asks it for every client's name
        found: Federation = ray.get(self._slots.federation)
        return found

    def share(self, value: Any) -> Any:
        size = getattr(value, "nbytes", None)
        return value if isinstance(size, int) and size < SMALL else ray.put(value)

    def fetch(self, handle: Any) -> Any:
        try:
            return ray.get(handle) if isinstance(handle, ray.ObjectRef) else handle
        except ObjectLostError as error:
            raise LostError(f"a state was lost with the node that held it ({_kind(error)})") from error

    def adapt(self) -> bool:
        if self._relieved:
            self._relieved = False
            return True
        if now() < self._placed + LOOK:
            return False
        self._placed, nodes = now(), alive_nodes()
        try:
            placement = place(self._config.engine, list(nodes.values()), self._useful)
        except PlacementError:  # for the moment: what there is waits for nodes to come back
            return False
        if placement.actors == len(self._slots):
            return False
        for slot in self._slots:
            if slot.jobs and slot.node not in nodes:  # its jobs, sent ahead, went with the node
                self._work.take_back(slot)
        self._slots.resize(placement.actors, nodes)
        before, self.plan = self.plan, replace(placement, actors=len(self._slots)).describe(self._clients)
        return self.plan != before

    def run(
        self, jobs: Sequence[Job], note: Note, stopping: Callable[[], bool] = lambda: False
    ) -> Generator[Done, None, None]:
        ahead = [self._ahead.pop(id(job), None) for job in jobs]
        fresh = iter(self._work.add([job for job, number in zip(jobs, ahead, strict=True) if number is None]))
        left = {next(fresh) if number is None else number: index for index, number in enumerate(ahead)}
        self._slots.fill()
        self._looked = now()  # what came back while nobody waited is received before anyone is called late
        try:
            while left and not stopping():
                for number in sorted(left.keys() & self._done.keys()):
                    yield replace(self._done.pop(number), index=left.pop(number))
                if left:
                    self._wait(note)
        finally:
            # Left early (a stop, an error): nothing of the dropped round may go on running.
            self._drop(set(left))

    def send_ahead(self, jobs: Sequence[Job]) -> None:
        self._ahead.update(zip(map(id, jobs), self._work.add(jobs), strict=True))
        self._slots.fill()
        self._send()

    def drop_ahead(self) -> None:
        self._drop(set(self._ahead.values()))
        self._ahead.clear()

    def _wait(self, note: Note) -> None:
        """Wait for a job, or for an actor that starts."""
        self._send()
        with self.recorder.phase(WAIT):
            ready, _ = ray.wait([*self._work.sent, *self._slots.coming], num_returns=1, timeout=LOOK)
        for reference in ready:
            if reference in self._slots.coming:
                self._slots.settle(reference, note)
                self._patience.look(note)  # at once: what is left may take less than a second
            else:
                done = self._receive(reference, note)
                if done is not None:
                    self._done[done.index] = done
        self._look(note)

    def _drop(self, numbers: set[int]) -> None:
        """Forget jobs. Actors that hold some end: a running call cannot be taken back."""
        for slot in self._slots:
            if not numbers.isdisjoint(slot.jobs):
                self._work.take_back(slot)
                self._slots.kill(slot)
        self._work.drop(numbers - self._done.keys())
        for number in numbers & self._done.keys():
            del self._done[number]

    def aside(self, function: Callable[..., Result], *arguments: Any) -> Callable[[float], Result]:
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        task = ray.remote(num_cpus=0, max_calls=1, max_retries=0)(function)
        name = function.__name__.strip("_").replace("_", " ")
        called = task.options(name=name, scheduling_strategy=here).remote(self._slots.federation, *arguments)
        return lambda seconds: ray.get(called, timeout=seconds)

    def close(self) -> None:
        self._slots.close()

    def _send(self) -> None:
        """Send one job to every idle actor, then one ahead to each while more than a slot's share is waiting.

        No job is sent ahead behind one that already fills its actor's fair share of what is left: it would wait there
        while other actors run out of work.
        """
        work, waiting = self._work, self._work.waiting
        share = work.unfinished / len(self._slots) * (1 + 1e-9)
        for depth in (1, 2):
            for slot in self._slots:
                enough = len(waiting) > (0 if depth == 1 else len(self._slots))
                if enough and len(slot.jobs) < depth and slot.up:
                    if depth == 2 and sum(work.jobs[index].cost for index in (*slot.jobs, waiting[0])) > share:
                        continue
                    with self.recorder.phase("send"):
                        work.send(work.next_for(slot), slot)

    def _receive(self, reference: Any, note: Note) -> Done | None:
        """Fetch the finished job behind a reference; None if it has to be done again."""
        work, call = self._work, self._work.sent[reference]
        job = work.jobs[call.index]
        try:
            with self.recorder.phase("receive"):
                result, started, seconds, seat = ray.get(reference)
        except (RayActorError, OutOfMemoryError) as error:
            self._died(call.slot, note, error)
            return None
        except RayTaskError as error:
            if isinstance(error.cause, GpuMemoryError):
                self._relieve(job, note, error.cause)
                return None
            if isinstance(error.cause, HostMemoryError):  # another may find it, once this one's is free again
                self._died(call.slot, note, error.cause)
                return None
            if isinstance(error.cause, ObjectLostError):
                what = f"{job.label}: what it starts from was lost with the node that held it ({_kind(error.cause)})"
                raise LostError(what) from error
            raise code_error(job.label, error.cause, str(error)) from error
        except ObjectLostError as error:  # it was done, but its node went before the result was here
            note(f"the result of {job.label} was lost with its node ({_kind(error)}); it is done again")
            work.again(reference)
            return None
        sends = work.sends[call.index]
        work.finished(reference)
        self._deadline.learn(job, seconds)
        # Sent before the result is looked at: aggregation on the driver never leaves an actor idle.
        self._send()
        done = Done(call.index, result, call.outputs, seconds, started, call.time, seat, sends)
        self.recorder.job(job, done)
        return done

    def _died(self, slot: Slot, note: Note, error: Exception) -> None:
        """Replace a dead actor and put its jobs back into the queue."""
        with_node = slot.node not in alive_nodes()
        number, label = self._do_again(slot)
        # No job takes a node with it, or the connection.
        if not with_node and not isinstance(error, ActorUnavailableError) and self._ends_too_many(number):
            times = counted(self._config.engine.task_attempts, "time")
            raise RaysimError(
                f"{label}: its actor died {times}, most likely for want of memory ({error}). Lower "
                "--training.batch_size or --engine.actors, or raise --engine.cpus_per_client; if something else ends "
                "the actors, raise --engine.task_attempts"
            ) from error
        how = "died with its node" if with_node else "died"
        if isinstance(error, HostMemoryError):
            how = f"had no memory left ({error})"
        note(f"{slot.name} {how} during {label}; a new one does its work again")

    def _do_again(self, slot: Slot) -> tuple[int, str]:
        """Replace a slot's actor and put its jobs back into the queue; number and label of the one that ran."""
        held = self._work.take_back(slot)
        self._slots.kill(slot)
        self._slots.fill()
        return held[0], self._work.jobs[held[0]].label

    def _ends_too_many(self, number: int) -> bool:
        """Count an actor that a job has ended; whether it is the job that kills them."""
        self._work.deaths[number] += 1
        return self._work.deaths[number] >= self._config.engine.task_attempts

    def _relieve(self, job: Job, note: Note, error: GpuMemoryError) -> None:
        """After a job ran out of GPU memory, send all open jobs again, to fewer actors."""
        config = less_crowded(self._config, len(self._slots))
        if config is None:
            raise RaysimError(
                f"{job.label}: the GPU's memory is not enough, even for one actor by itself: {error}. Lower "
                "--training.batch_size (--evaluation.batch_size, if that is where it happens), choose a smaller "
                "--model, or use GPUs with more memory"
            ) from error
        for slot in self._slots:
            self._work.take_back(slot)
        placement = place(config.engine, list(alive_nodes().values()), self._useful)
        self._config, self._patience = config, Patience(self._slots, placement.needs)
        self._slots.restart(config, Starter(config.engine), placement.actors)
        self.plan, self._relieved = placement.describe(self._clients), True
        note(f"the GPU's memory was not enough during {job.label} ({error}); from here on {self.plan}")

    def _look(self, note: Note) -> None:
        """Once a second, replace actors that are late and report if no job makes progress."""
        time = now()
        if time < self._looked + LOOK:
            return
        self._looked = time
        if self._work.left:
            self._patience.look(note)
        self._slots.look(max(LEAST, self._config.engine.task_deadline), note)
        for slot in self._slots:
            limit = self._deadline.of(self._work.jobs[slot.jobs[0]]) if slot.jobs else float("inf")
            # A result that is there and was not fetched yet is not late: the driver was busy.
            if time - slot.begun > limit and not ray.wait([self._work.call_of(slot)], timeout=0, fetch_local=False)[0]:
                self._late(slot, note, limit)

    def _late(self, slot: Slot, note: Note, limit: float) -> None:
        number, label = self._do_again(slot)
        if self._ends_too_many(number):
            times = counted(self._config.engine.task_attempts, "time")
            raise RaysimError(
                f"{label}: {times} its actor did not answer within {limit:g} s. If it takes so long, raise "
                "--engine.task_deadline"
            )
        note(f"{slot.name} did not answer within {limit:g} s during {label}; it is ended, a new one does its work")


def _kind(error: ObjectLostError) -> str:
    return type(error).__name__
