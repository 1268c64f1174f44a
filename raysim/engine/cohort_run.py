"""Runs a round's client tasks: sends them to the pool in chunks, collects their updates in client order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.engine.backend import Done, Job, job_name
from raysim.engine.client_task import TrainChunk
from raysim.engine.cohort_chunks import Chunk, Chunker, Chunks
from raysim.engine.cohort_results import CohortResults
from raysim.engine.failure import Failure
from raysim.engine.observer import ChunkReturned, RunNotes
from raysim.engine.payload import Packer
from raysim.engine.tree_reduce import add_on_workers, sum_of
from raysim.engine.update_spill import UpdateSpill
from raysim.errors import ClientError, RaysimError
from raysim.method import ClientTask, Message, Updates
from raysim.storage import pytree

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.engine.backend import Pool
    from raysim.engine.client_task import TrainedChunk
    from raysim.engine.observer import Observer
    from raysim.engine.round_plan import ClientFacts, RoundPlan
    from raysim.storage.run_folder import RunFolder


class Stopped(Exception):
    """The run was asked to stop; the round in flight is dropped, the last whole round is in the checkpoint."""


@dataclass(frozen=True)
class Collected:
    """The results of a round's client tasks."""

    updates: Updates
    states: dict[int, Any]
    """Handle of each participant's new state, where clients keep something."""
    models: dict[int, Any]
    """Handle of each participant's whole trained model, in a round whose loss is decomposed."""
    rows: list[dict[str, Any]]
    """The participants' rows of the clients table, and their ``bytes_up``."""
    busy: float
    """Seconds that workers were at work, added up."""
    slots: int
    """Number of slots when the tasks were sent."""


@dataclass(frozen=True)
class Prepared:
    """Client tasks of one round, as jobs that may have been sent."""

    plan: RoundPlan
    messages: Mapping[int, Message]
    chunks: Chunks
    jobs: Sequence[Job]


class Collector:
    """Sends client tasks and collects updates.

    Args:
        folder: the run's; it gets a log of failures, and a file where updates do not fit into memory.
        stopping: asked between tasks; true ends the round with :class:`Stopped`.
    """

    def __init__(
        self,
        config: RunConfig,
        facts: ClientFacts,
        pool: Pool,
        folder: RunFolder,
        observer: Observer,
        stopping: Callable[[], bool],
    ) -> None:
        self._config, self._chunker, self._pool = config, Chunker(config, facts), pool
        self._bytes_up = facts.bytes_up
        self._folder, self._observer, self._stopping = folder, observer, stopping

    def collect(self, plan: RoundPlan, messages: Mapping[int, Message], states: Mapping[int, Any]) -> Collected:
        """Do every participant's task once.

        Raises:
            ClientError: a client failed, and failing clients are not to be skipped.
            RaysimError: every client failed.
            Stopped: asked to stop.
        """
        (collected,) = self.finish([self.prepare(plan, messages, states, Packer(self._pool))])
        if not collected.updates.clients:
            raise RaysimError(f"round {plan.number}: every client failed, so there is nothing to aggregate")
        return collected

    def prepare(
        self,
        plan: RoundPlan,
        messages: Mapping[int, Message],
        states: Mapping[int, Any],
        packer: Packer,
        before: int = 0,
    ) -> Prepared:
        """The jobs of a round's participants, or of some of them.

        Args:
            packer: the round's.
            before: the round that takes their updates, where that may be a later one (:attr:`Job.before`).
        """
        chunks = self._chunker.chunks(plan, messages, self._pool.slots)
        with self._pool.recorder.phase("serialize"):
            jobs = [replace(job, before=before) for job in self._jobs(plan, chunks, messages, states, packer)]
        return Prepared(plan, messages, chunks, jobs)

    def finish(self, prepared: Sequence[Prepared]) -> list[Collected]:
        """Wait for the jobs of several cohorts; clients that failed are left out. Raises as :meth:`collect`."""
        recorder, slots = self._pool.recorder, self._pool.slots
        gathered = [
            CohortResults(each.plan, each.chunks, UpdateSpill(self._pool.room, self._folder.path)) for each in prepared
        ]
        owners = [(number, place) for number, each in enumerate(prepared) for place in range(len(each.jobs))]
        clients = [client for each in prepared for client in each.plan.clients]
        self._observer.tasks_started(clients)
        with closing(self._finished([job for each in prepared for job in each.jobs])) as running:
            for done in running:
                number, place = owners[done.index]
                results, own = gathered[number], replace(done, index=place)
                with recorder.phase("receive"):
                    trained = results.receive(own)
                with recorder.phase("aggregate"):
                    results.add_up()
                self._tell(own, prepared[number].chunks.chunks[place], trained)
                self._observer.clients_done(sum(each.tasks for each in gathered), len(clients))
                self._check(trained, prepared[number].plan.number)
        with recorder.phase("rows"):
            collected = [
                self._collected(each, results, slots) for each, results in zip(prepared, gathered, strict=True)
            ]
        return [
            self._summed(found, results, each)
            for found, results, each in zip(collected, gathered, prepared, strict=True)
        ]

    def _collected(self, prepared: Prepared, results: CohortResults, slots: int) -> Collected:
        updates, seconds = results.updates()
        rows = self._rows(prepared.plan, updates, seconds)
        if seconds:
            self._chunker.epoch_seconds = float(np.median(seconds)) / max(1, prepared.plan.local_epochs)
        return Collected(updates, results.states, results.models, rows, results.busy, slots)

    def _summed(self, collected: Collected, results: CohortResults, prepared: Prepared) -> Collected:
        """With the sum of the updates, where the chunks returned sums."""
        if not (prepared.chunks.returned.sums and collected.updates.clients):
            return collected
        if prepared.chunks.returned.sums_stay:
            left = add_on_workers(results.sums, self._finished, f"round {prepared.plan.number}")
            total = sum_of([*map(self._pool.fetch, left)])
        else:
            total = results.total()
        return replace(collected, updates=replace(collected.updates, weighted_total=total))

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
        jobs = []
        for chunk in chunks.chunks:
            clients = list(chunk.clients)
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
                chunk.first, first_task, chunk.clients, packed, samples, chunks.returned, chunks.merged, begins
            )
            outputs = chunks.returned.outputs(len(clients))
            cost = float(sum(map(self._chunker.cost, samples)) * plan.local_epochs)
            jobs.append(
                Job(task, packed.inputs, outputs, cost, f"round {plan.number}, clients {clients}", name, clients[0])
            )
        return jobs

    def _finished(self, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        with closing(self._pool.run(jobs, RunNotes(self._folder, self._observer).fault, self._stopping)) as running:
            yield from running
        if self._stopping():
            raise Stopped

    def _rows(self, plan: RoundPlan, updates: Updates, seconds: Sequence[float]) -> list[dict[str, Any]]:
        """The participants' rows of the clients table."""
        return [
            {
                "round": plan.number,
                "client": client,
                "name": self._pool.federation.client_name(client),
                "samples": int(samples),
                "local_epochs": plan.local_epochs,
                **update.metrics,
                "seconds_task": spent,
                "bytes_up": self._bytes_up + pytree.nbytes(update.extra),
            }
            for client, samples, update, spent in zip(
                updates.clients, updates.samples, updates.each, seconds, strict=True
            )
        ]

    def _tell(self, done: Done, chunk: Chunk, trained: TrainedChunk) -> None:
        """Show that a chunk's clients are back."""
        failed = tuple(update.client for update in trained.updates if isinstance(update, Failure))
        self._observer.chunk_returned(ChunkReturned(chunk.clients, failed, done.seconds, done.seat, done.sends))

    def _check(self, trained: TrainedChunk, number: int) -> None:
        """Log the chunk's failures, and end the run by the first unless failing clients are skipped."""
        for failure in trained.updates:
            if not isinstance(failure, Failure):
                continue
            text = f"client {failure.client}, round {number}, stage {failure.stage}: {failure.reason}"
            self._folder.log(f"{text}\n{failure.traceback}".rstrip())
            if self._config.engine.on_client_error == "fail":
                raise ClientError(
                    f"{text}. To go on without failing clients: --engine.on_client_error skip",
                    client=failure.client,
                    round=number,
                    stage=failure.stage,
                    traceback=failure.traceback,
                )
            self._observer.fault(f"skipped: {text}")
