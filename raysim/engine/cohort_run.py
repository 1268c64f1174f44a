"""Runs client tasks: sends them to the pool in chunks, collects each server step's updates in client order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim.client_side.train_chunk import TrainChunk
from raysim.engine.cohort_results import CohortResults
from raysim.engine.observer import ChunkReturned
from raysim.engine.proof import has_tasks
from raysim.engine.tree_reduce import add_on_workers, sum_of
from raysim.engine.update_spill import UpdateSpill
from raysim.errors import ClientError, RaysimError
from raysim.exchange.payload import Failure, Packer
from raysim.exchange.pool_protocol import Done, Job, job_name
from raysim.exchange.task_digests import MessageDigests
from raysim.method import ClientTask, Message, Update, Updates
from raysim.virtual_time.staleness import weighted

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.engine.cohort_chunks import Chunker, Chunks
    from raysim.engine.observer import RunNotes
    from raysim.engine.round_plan import RoundPlan
    from raysim.exchange.pool_protocol import Pool
    from raysim.method import Vector


class Stopped(Exception):
    """The run was asked to stop; the round in flight is dropped, the last whole round is in the checkpoint."""


@dataclass(frozen=True)
class Collected:
    """The results of the client tasks whose updates a server step takes."""

    updates: Updates
    states: dict[int, Any]
    """Handle of each participant's new state, where clients keep something."""
    models: dict[int, Any]
    """Handle of each participant's whole trained model, in a round whose loss is decomposed."""
    rows: list[dict[str, Any]]
    """The participants' rows of the clients table."""
    busy: float
    """Seconds that workers were at work, added up."""
    slots: int
    """Number of slots when the tasks were sent."""

    def put(self, columns: Mapping[str, Sequence[float] | NDArray[np.float64]]) -> None:
        """Put columns that the method reports, a value for each participant, into the rows of the clients table."""
        for name, values in columns.items():
            for row, value in zip(self.rows, values, strict=True):
                row[name] = float(value)


class Collector:
    """Sends client tasks and collects updates, each for the server step that takes it.

    Where steps take updates of several versions of the server's state, tasks are sent when they begin, so that they run
    beside whatever the driver does until that step, those of the next step first. A client's new state counts from the
    arrival of its update on. Nothing here is saved: after a return to a checkpoint these tasks are begun again, from
    the server's earlier states in it.

    Args:
        method: the run's, as the server's half uses it.
        notes: with the run's folder, which gets a log of failures, and a file where updates do not fit into memory.
        stopping: asked between tasks; true ends the round with :class:`Stopped`.
    """

    def __init__(
        self,
        config: RunConfig,
        method: Any,
        chunker: Chunker,
        pool: Pool,
        notes: RunNotes,
        stopping: Callable[[], bool],
    ) -> None:
        self._config, self._method, self._chunker, self._pool = config, method, chunker, pool
        self._sums, self._plain = method.traits.weighted_mean, method.traits.plain_mean
        self._notes, self._observer, self._stopping = notes, notes.observer, stopping
        self._under_way: dict[int, list[CohortResults]] = {}
        """Results under way by the server step that takes their updates."""

    def begin(self, plan: RoundPlan, messages: Mapping[int, Message], states: Mapping[int, Any]) -> None:
        """Prepare a round's client tasks; send them, where their updates may be those of a later step."""
        packer = Packer(self._pool)
        for step in sorted({*plan.steps.values()}):
            samples = {client: count for client, count in plan.samples.items() if plan.steps[client] == step}
            part = replace(plan, samples=samples)
            chunks = self._chunker.chunks(part, messages, self._pool.slots)
            if has_tasks(self._notes.folder, self._config):
                chunks = replace(chunks, returned=replace(chunks.returned, digests=True))
            with self._pool.recorder.phase("serialize"):
                jobs = self._jobs(part, chunks, messages, states, packer)
            self._under_way.setdefault(step, []).append(CohortResults(part, messages, chunks, jobs))
            if self._config.timing.stale:
                self._pool.send_ahead(jobs)

    @property
    def merges(self) -> bool:
        """Whether clients that take a single step may be merged."""
        return self._chunker.merges

    def clear(self) -> None:
        """Forget what was begun: the run goes back, or ends."""
        self._under_way.clear()
        self._pool.drop_ahead()

    def take(self, number: int, message: Callable[[int], Message], parameters: int) -> Collected:
        """The updates that a server step takes; clients that failed are left out.

        Args:
            message: what a client would be sent now.
            parameters: how many entries of an update are parameters; behind them are BatchNorm's statistics.

        Raises:
            ClientError: a client failed, and failing clients are not to be skipped.
            RaysimError: every client failed.
            Stopped: asked to stop.
        """
        slots, cohorts = self._pool.slots, self._under_way.pop(number, [])
        if not cohorts:  # a Poisson cohort of no client
            return Collected(Updates((), np.zeros(0, np.int64), ()), {}, {}, [], 0.0, slots)
        self._receive(cohorts)
        owners = {client: cohort for cohort in cohorts for client in cohort.updates}
        if not owners:
            if self._config.timing.rule.single:
                way_out = self._instead
            else:
                way_out = "See why in run.log"
                if self._config.schedule.sampling_rate < 1:
                    way_out += "; larger cohorts (schedule.sampling_rate) hold others beside them"
            raise RaysimError(f"round {number}: every client failed, so there is nothing to aggregate. {way_out}")
        with self._pool.recorder.phase("rows"):
            taken = [(client, owners[client]) for client in sorted(owners)]
            weights = [1 if self._plain else cohort.plan.samples[client] for client, cohort in taken]
            updates = Updates(
                tuple(client for client, _ in taken),
                np.array(weights, np.int64),
                tuple(cohort.updates[client] for client, cohort in taken),
                staleness=tuple(number - cohort.plan.number for _, cohort in taken),
                learning_rates=tuple(cohort.plan.learning_rate for _, cohort in taken),
            )
            sent = MessageDigests()
            rows = [self._row(number, client, cohort, sent) for client, cohort in taken]
        if self._config.timing.stale:
            bases = [self._started_from(cohort.messages[client], cohort.updates[client]) for client, cohort in taken]
            currents = (self._started_from(message(client), cohort.updates[client]) for client, cohort in taken)
            updates = weighted(updates, self._config.timing, bases, currents, self._sums, parameters)
        elif self._sums:
            updates = replace(updates, weighted_total=self._total(*cohorts))
        states = {client: state for cohort in cohorts for client, state in cohort.states.items()}
        models = {client: model for cohort in cohorts for client, model in cohort.models.items()}
        return Collected(updates, states, models, rows, sum(cohort.busy for cohort in cohorts), slots)

    def _started_from(self, message: Message, update: Update) -> Vector:
        own = getattr(self._method, "started_from", None)  # may be left out
        return message.parameters if own is None else own(message, update)

    def _receive(self, cohorts: Sequence[CohortResults]) -> None:
        """Wait for the jobs of these cohorts."""
        recorder, spill = self._pool.recorder, UpdateSpill(self._pool.room, self._notes.folder.path)
        owners = [(cohort, place) for cohort in cohorts for place in range(len(cohort.jobs))]
        clients = [client for cohort in cohorts for client in cohort.plan.clients]
        self._observer.tasks_started(clients)
        returned = 0
        with closing(self._finished([cohort.jobs[place] for cohort, place in owners])) as running:
            for done in running:
                cohort, place = owners[done.index]
                with recorder.phase("receive"):
                    trained = spill.take(done.result)
                    cohort.receive(place, trained, done)
                with recorder.phase("aggregate"):
                    cohort.add_up()
                failures = [update for update in trained.updates if isinstance(update, Failure)]
                failed, group = tuple(failure.client for failure in failures), tuple(cohort.chunks.groups[place])
                self._observer.chunk_returned(ChunkReturned(group, failed, done.seconds, done.seat, done.sends))
                returned += len(group)
                self._observer.clients_done(returned, len(clients))
                self._check(failures, cohort.plan.number)
        for cohort in cohorts:
            if cohort.seconds:
                seconds = float(np.median([*cohort.seconds.values()]))
                self._chunker.epoch_seconds = seconds / max(1, cohort.plan.local_epochs)

    def _total(self, cohort: CohortResults) -> Vector | None:
        """Σ_i m_i Δ_i [d], of the sums that the chunks returned or left on the workers."""
        if not cohort.chunks.returned.sums_stay:
            return cohort.total()
        left = add_on_workers(cohort.sums, self._finished, f"round {cohort.plan.number}")
        return sum_of([*map(self._pool.fetch, left)])

    def _jobs(
        self,
        plan: RoundPlan,
        chunks: Chunks,
        messages: Mapping[int, Message],
        states: Mapping[int, Any],
        packer: Packer,
    ) -> list[Job]:
        """A job for each chunk; what several hold is stored once."""
        config, name = self._config, job_name("train", plan.number)
        jobs: list[Job] = []
        first = 0
        for clients in chunks.groups:
            packed = packer.pack(clients, [messages[client] for client in clients], states)
            first_task = ClientTask(
                config.seed,
                plan.number,
                clients[0],
                plan.local_epochs,
                plan.learning_rate,
                config.training,
                evaluation_batch=config.evaluation.batch_size,
                cohort=plan.cohort,
            )
            samples = tuple(plan.samples[client] for client in clients)
            begins = tuple(plan.begins[client] for client in clients) if plan.begins else ()
            task = TrainChunk(
                first, first_task, tuple(clients), packed, samples, chunks.returned, chunks.merged, begins
            )
            outputs = chunks.returned.outputs(len(clients))
            cost = float(sum(map(self._chunker.cost, samples)) * plan.local_epochs)
            label = f"round {plan.number}, clients {clients}"
            jobs.append(Job(task, packed.inputs, outputs, cost, label, name, plan.steps[clients[0]], clients[0]))
            first += len(clients)
        return jobs

    def _finished(self, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        with closing(self._pool.run(jobs, self._notes.fault, self._stopping)) as running:
            yield from running
        if self._stopping():
            raise Stopped

    def _row(self, number: int, client: int, cohort: CohortResults, sent: MessageDigests) -> dict[str, Any]:
        """A participant's row of the clients table."""
        update, digests = cohort.updates[client], cohort.digests.get(client, {})
        return {
            "round": number,
            "client": client,
            "name": self._pool.federation.client_name(client),
            "samples": int(cohort.plan.samples[client]),
            "local_epochs": cohort.plan.local_epochs,
            **update.metrics,
            "seconds_task": cohort.seconds[client],
            **(sent.of(cohort.messages[client]) if digests else {}),
            **digests,
        }

    @property
    def _instead(self) -> str:
        """The next step for a user with a client that fails."""
        if single := self._config.timing.rule.single:
            return (
                f"With {single} a server step takes one update, so that no client can be left out of it. Correct this "
                "one, or set --timing.mode to buffered, with --timing.buffer 2 or more, and "
                "--engine.on_client_error to skip"
            )
        return "To go on without failing clients: --engine.on_client_error skip"

    def _check(self, failures: Sequence[Failure], number: int) -> None:
        """Log the chunk's failures, and end the run by the first unless failing clients are skipped."""
        for failure in failures:
            text = f"client {failure.client}, round {number}, stage {failure.stage}: {failure.reason.rstrip('.')}"
            self._notes.folder.log(f"{text}\n{failure.traceback}".rstrip())
            if self._config.engine.on_client_error == "fail":
                raise ClientError(
                    f"{text}. {self._instead}",
                    client=failure.client,
                    round=number,
                    stage=failure.stage,
                    traceback=failure.traceback,
                )
            self._observer.fault(f"skipped: {text}")
