"""A round's visits: sent to the pool in blocks, collected in client order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregators.means import PairwiseSum, node_count
from raysim.engine.backend import Done, Job, cut, job_name, power_of_two
from raysim.engine.client_task import TrainBlock, TrainedBlock
from raysim.engine.failure import Failure
from raysim.engine.fedsgd import group_size, worth_it
from raysim.engine.observer import Visited
from raysim.engine.payload import Packer
from raysim.engine.tree_reduce import add_on_workers, stays_on_workers, sum_of
from raysim.engine.update_spill import Landing
from raysim.errors import ClientError, RaysimError
from raysim.method import ClientTask, Message, Update, Updates
from raysim.storage import pytree

if TYPE_CHECKING:
    from raysim.cohort import Cohort
    from raysim.config.run_config import RunConfig
    from raysim.engine.backend import Pool
    from raysim.engine.observer import Observer
    from raysim.engine.profiler import Recorder
    from raysim.storage.run_folder import RunFolder
    from workloads.federated_data import Federation


class Stopped(Exception):
    """The run was asked to stop; the round in flight is dropped, the last whole round is in the checkpoint."""


@dataclass(frozen=True)
class RoundPlan:
    """What one round is to be, known before it starts."""

    number: int
    """Counted from 1."""
    local_epochs: int
    learning_rate: float
    clients: tuple[int, ...]
    """The participants, ascending."""
    cohort: Cohort
    evaluates: bool
    decomposes: bool


@dataclass(frozen=True)
class Collected:
    """What a round's visits gave."""

    updates: Updates
    kept: dict[int, Any]
    """Handle of each participant's new state, where clients keep something."""
    trained: dict[int, Any]
    """Handle of each participant's whole trained model, in a round whose loss is decomposed."""
    rows: list[dict[str, Any]]
    """The participants' rows of the clients table, and their ``bytes_up``."""
    busy: float
    """Seconds that workers were at work, added up."""
    slots: int
    """How many could be, at the start."""


class Collector:
    """Sends visits and collects updates.

    Args:
        keeps: whether clients of this method keep a state.
        state_bytes: how large one is.
        merges: whether clients that take a single step may be merged (raysim/engine/fedsgd.py).
        stopping: asked between tasks; true ends the round with :class:`Stopped`.
    """

    def __init__(
        self,
        config: RunConfig,
        federation: Federation,
        pool: Pool,
        folder: RunFolder,
        observer: Observer,
        stopping: Callable[[], bool],
        keeps: bool,
        state_bytes: int,
        merges: bool,
        recorder: Recorder,
    ) -> None:
        self._config, self._federation, self._pool = config, federation, pool
        self._keeps, self._state_bytes, self._merges = keeps, state_bytes, merges
        self._folder, self._observer, self._stopping, self._recorder = folder, observer, stopping, recorder
        self._epoch_seconds = 0.0
        """Of a visit in the last round, for each local epoch; 0 before the first."""

    def collect(self, plan: RoundPlan, messages: Mapping[int, Message], kept: Mapping[int, Any]) -> Collected:
        """ClientTask every participant once.

        Raises:
            ClientError: a visit failed, and failing clients are not to be skipped.
            RaysimError: every visit failed.
            Stopped: asked to stop.
        """
        engine, slots = self._config.engine, self._pool.slots
        shared = next(iter(messages.values())).parameters
        weighted_mean = self._config.method.traits.weighted_mean
        returned_bytes = self._state_bytes + shared.nbytes * ((not weighted_mean) + plan.decomposes)
        samples = dict(zip(plan.clients, map(self._federation.samples, plan.clients), strict=True))
        merged, lengths = (
            self._merged(plan, samples, messages),
            [self._length(samples[client]) for client in plan.clients],
        )
        each = self._epoch_seconds * plan.local_epochs
        blocks = cut(plan.clients, slots, engine.block_size, returned_bytes, merged, lengths, each)
        packer = Packer(self._pool)
        nodes = sum(node_count(first, len(block)) for first, block in _with_positions(blocks))
        sums_stay = weighted_mean and stays_on_workers(nodes, shared.size)
        if sums_stay:  # groups of neighbours are nodes of the tree only if all blocks have one size, a power of two
            size = engine.block_size or power_of_two(max(map(len, blocks)) // 2)
            blocks = cut(plan.clients, slots, size, 0, merged)
        with self._recorder.phase("serialise"):
            jobs = [
                self._job(plan, first, block, samples, messages, kept, packer, sums_stay, merged)
                for first, block in _with_positions(blocks)
            ]
        results: list[TrainedBlock | None] = [None] * len(jobs)
        sums: list[Any] = [None] * len(jobs)
        states: dict[int, Any] = {}
        models: dict[int, Any] = {}
        landing, total, added = Landing(self._pool.room, self._folder.path), PairwiseSum(), 0
        done, busy = 0, 0.0
        self._observer.visits_started(plan.clients)
        with closing(self._finished(jobs)) as running:
            for finished in running:
                block = blocks[finished.index]
                with self._recorder.phase("receive"):
                    trained = results[finished.index] = landing.take(finished.result)
                # Added up as they come, as far as the order of clients allows, so that few wait.
                with self._recorder.phase("aggregate"):
                    while added < len(results) and (following := results[added]) is not None:
                        for vector, positions in following.sums:
                            total.add(vector, positions)
                        results[added] = replace(following, sums=())
                        added += 1
                busy += finished.seconds
                done += len(block)
                failed = tuple(update.client for update in trained.updates if isinstance(update, Failure))
                seen = Visited(tuple(block), failed, finished.seconds, finished.seat, finished.sends)
                self._observer.visited(seen)
                self._observer.clients_done(done, len(plan.clients))
                for update in trained.updates:
                    if isinstance(update, Failure):
                        self._failed(update, plan.number)
                if sums_stay:
                    sums[finished.index] = finished.outputs[-1]
                good = [isinstance(update, Update) for update in trained.updates]
                first = len(block) if self._keeps else 0
                if self._keeps:
                    states |= itertools.compress(zip(block, finished.outputs[:first], strict=True), good)
                if plan.decomposes:
                    handles = finished.outputs[first : first + len(block)]
                    models |= itertools.compress(zip(block, handles, strict=True), good)
        with self._recorder.phase("rows"):
            whole = [result for result in results if result is not None]
            updates, seconds = self._in_client_order(plan, samples, blocks, whole)
            rows = self._rows(plan, shared.nbytes, updates, seconds)
            self._epoch_seconds = float(np.median(seconds)) / max(1, plan.local_epochs)
        if sums_stay:
            left = add_on_workers(sums, self._finished, f"round {plan.number}")
            updates = replace(updates, weighted_total=sum_of([*map(self._pool.fetch, left)]))
        elif weighted_mean:
            updates = replace(updates, weighted_total=total.total())
        return Collected(updates, states, models, rows, busy, slots)

    def _rows(
        self, plan: RoundPlan, shared_bytes: int, updates: Updates, seconds: Sequence[float]
    ) -> list[dict[str, Any]]:
        return [
            {
                "round": plan.number,
                "client": client,
                "name": self._federation.client_name(client),
                "samples": int(samples),
                "local_epochs": plan.local_epochs,
                **update.metrics,
                "seconds_visit": spent,
                "bytes_up": shared_bytes + pytree.nbytes(update.extra),
            }
            for client, samples, update, spent in zip(
                updates.clients, updates.samples, updates.each, seconds, strict=True
            )
        ]

    def _in_client_order(
        self, plan: RoundPlan, samples: Mapping[int, int], blocks: list[list[int]], results: list[TrainedBlock]
    ) -> tuple[Updates, list[float]]:
        good = [
            (client, update, seconds)
            for block, result in zip(blocks, results, strict=True)
            for client, update, seconds in zip(block, result.updates, result.seconds, strict=True)
            if isinstance(update, Update)
        ]
        if not good:
            raise RaysimError(f"round {plan.number}: every client failed, so there is nothing to aggregate")
        clients = tuple(client for client, _, _ in good)
        counts = np.array([samples[client] for client in clients], dtype=np.int64)
        return Updates(clients, counts, tuple(update for _, update, _ in good)), [seconds for *_, seconds in good]

    def _job(
        self,
        plan: RoundPlan,
        first: int,
        block: list[int],
        samples: Mapping[int, int],
        messages: Mapping[int, Message],
        kept: Mapping[int, Any],
        packer: Packer,
        sum_stays: bool,
        merged: int,
    ) -> Job:
        config = self._config
        packed = packer.pack(block, [messages[client] for client in block], kept)
        visit = ClientTask(
            config.seed,
            plan.number,
            block[0],
            plan.local_epochs,
            plan.learning_rate,
            config.training,
            evaluation_batch=config.evaluation.batch_size,
            cohort=plan.cohort,
        )
        counts = tuple(samples[client] for client in block)
        summed, whole = config.method.traits.weighted_mean, plan.decomposes
        task = TrainBlock(
            first, visit, tuple(block), packed, counts, self._keeps, summed, sum_stays, not summed, whole, merged
        )
        outputs = len(block) * (self._keeps + whole) + sum_stays
        cost = float(sum(map(self._length, counts)) * plan.local_epochs)
        label, name = f"round {plan.number}, clients {block}", job_name("train", plan.number)
        return Job(task, packed.inputs, outputs, cost, label, name, block[0])

    def _merged(self, plan: RoundPlan, samples: Mapping[int, int], messages: Mapping[int, Message]) -> int:
        """How many neighbours are merged; 1: none."""
        if not self._merges or plan.decomposes:  # which asks for each client's model
            return 1
        if len({id(message.parameters) for message in messages.values()}) > 1:
            return 1  # clients start from different parameters
        training = self._config.training
        size = group_size(training, plan.local_epochs, len(plan.clients))
        if size == 1 or not worth_it(training, [samples[client] for client in plan.clients], size):
            return 1
        return size

    def _length(self, samples: int) -> int:
        """How long a local epoch of a client with so many samples is, relative to others'."""
        return 1 if self._config.training.steps_per_epoch else max(1, samples)

    def _finished(self, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        with closing(self._pool.run(jobs, self._mended, self._stopping)) as running:
            yield from running
        if self._stopping():
            raise Stopped

    def _failed(self, failure: Failure, number: int) -> None:
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

    def _mended(self, text: str) -> None:
        self._folder.log(text)
        self._observer.fault(text)


def _with_positions(blocks: Sequence[list[int]]) -> list[tuple[int, list[int]]]:
    """Each block behind the position of its first client among all of them."""
    return list(zip(itertools.accumulate(map(len, blocks), initial=0), blocks, strict=False))
