"""Client tasks: the remote task that trains a chunk of clients."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch

from raysim import seeds
from raysim.aggregators.means import PairwiseSum
from raysim.client_side import process_state
from raysim.client_side.device import is_out_of_memory
from raysim.client_side.drift import Moment
from raysim.client_side.fedsgd import Merged, take_one_step, train_merged
from raysim.client_side.worker import ClientState, Worker
from raysim.errors import RaysimError, reason_of
from raysim.exchange.payload import Failure, Packed, Returned, TrainedChunk
from raysim.exchange.pool_protocol import power_of_two
from raysim.exchange.profile_marks import Marks
from raysim.exchange.returned_values import unusable
from raysim.exchange.task_digests import returned_digests
from raysim.flat_model import to_numpy
from raysim.method import NOTHING, ClientTask, Message, Update, Vector
from raysim.workloads.models.classifier import has_batch_norm

TaskResult: TypeAlias = "tuple[Update | Failure, ClientState | None, float]"
"""Update or failure, the client's new state, and seconds."""


@dataclass(frozen=True)
class TrainChunk:
    """The remote task that trains a few clients, one after another."""

    first: int
    """Where the first of them stands among the round's participants."""
    task: ClientTask
    """All client tasks, but for client, classes and objective: one is packed in less time than all."""
    clients: tuple[int, ...]
    packed: Packed
    samples: tuple[int, ...]
    returned: Returned
    merged: int = 1
    """How many neighbors are merged where each takes a single step: a power of two, ``first`` a multiple of it."""
    begins: tuple[float, ...] = ()
    """Virtual seconds at which each client task begins; empty without virtual time. Merged ones begin together."""

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[TrainedChunk, list[Any]]:
        """Train the clients; what is ``returned``.

        Raises:
            RaysimError: a client's kernel failed on a GPU, which takes no call of this process any more.
        """
        training = _Training(self, worker, inputs)
        try:
            with kept_globals(worker.own_code):
                for group in self._groups():
                    training.train(group)
        except RuntimeError as error:
            # After a kernel failed a GPU refuses every call, also the one that puts its stream back: no other client
            # can be trained here, and what failed stands in the first failure.
            if (failure := training.failure()) is None:
                raise
            raise RaysimError(f"client {failure.client}, {failure.stage}: {failure.reason}; then {error}") from error
        return training.result()

    def moment(self, place: int) -> Moment:
        """When the task at a place of the chunk begins."""
        return Moment(self.task.round, self.begins[place] if self.begins else 0.0)

    def _groups(self) -> Iterator[slice]:
        """Neighbors that may be merged, at the end fewer: each is a node of the sum's tree. Or, without any, all."""
        start, count = 0, len(self.clients)
        while start < count:
            stop = count if self.merged == 1 else start + min(self.merged, power_of_two(count - start))
            yield slice(start, stop)
            start = stop


class _Training:
    """One chunk at work: its groups of neighbors in order, and what they have given so far."""

    def __init__(self, chunk: TrainChunk, worker: Worker, inputs: Sequence[Any]) -> None:
        self._chunk, self._worker, self._inputs = chunk, worker, inputs
        self._tasks = [
            replace(
                chunk.task,
                client=client,
                classes=worker.federation.input_spec(client).classes,
                objective=worker.objective,
            )
            for client in chunk.clients
        ]
        self._marks = Marks(worker.config.engine.profile)
        self._total = PairwiseSum(chunk.first)
        self._plain = worker.method.traits.plain_mean
        self._results: list[TaskResult] = []
        self._models: list[Vector | None] = []
        self._digests: list[Mapping[str, str]] = []
        self._after_merged = False
        """The group before was merged, which leaves the start of training in the model."""

    def train(self, group: slice) -> None:
        """Train a group as one where that is possible, else its clients one after another."""
        merged = self._merge(group)
        self._after_merged = isinstance(merged, Merged)
        if isinstance(merged, Merged):
            count = len(merged.updates)
            self._total.add(merged.total, count)
            self._results += [(update, None, merged.seconds / count) for update in merged.updates]
            if self._chunk.returned.digests:
                self._digests += [returned_digests(Update(merged.total, {}), None)] * count
            return
        received = self._chunk.packed.unpack(self._inputs, group)
        for place, (message, state) in enumerate(received, group.start):
            self._results.append(self._train_alone(place, message, state, merged))

    def _merge(self, group: slice) -> Merged | Failure | None:
        """The single steps of several clients, which were all sent the same; None: they are to be trained alone."""
        chunk, samples = self._chunk, self._chunk.samples[group]
        if chunk.merged == 1 or len(samples) == 1 or not take_one_step(chunk.task.training, samples):
            return None
        self._worker.at(chunk.moment(group.start))
        parameters = None if self._after_merged else chunk.packed.messages[0].unpack(self._inputs).parameters
        return train_merged(self._worker, self._tasks[group], samples, parameters, self._marks)

    def _train_alone(
        self, place: int, message: Message, state: ClientState | None, merged: Failure | None
    ) -> TaskResult:
        """The task of the client at a place of the chunk, after a merged step of its group that raised, or none."""
        task, returned, started = self._tasks[place], self._chunk.returned, time.perf_counter()
        self._worker.at(self._chunk.moment(place))
        update, after = _train_one(self._worker, task, message, state, returned.states, self._marks)
        seconds = time.perf_counter() - started
        if merged is not None and merged.client == task.client and isinstance(update, Update):
            # What raised only once, or only there, may not pass unseen: the results would depend on it.
            reason = f"{merged.reason}; not so by itself, as all are trained with --engine.merge_single_steps false"
            update = replace(merged, reason=reason)
        if returned.digests:
            self._digests.append(returned_digests(update, after) if isinstance(update, Update) else {})
        if returned.models:
            whole = self._trained_model(task.client, message, update, after) if isinstance(update, Update) else None
            self._models.append(whole)
        if returned.sums:
            self._marks("sum", task.client)
            delta = None
            if isinstance(update, Update):
                weight = 1 if self._plain else self._chunk.samples[place]
                delta, update = update.delta * np.float32(weight), replace(update, delta=NOTHING)
            self._total.add(delta)
        return update, after, seconds

    def _trained_model(self, client: int, message: Message, update: Update, state: ClientState | None) -> Vector:
        """The client's whole trained model in its flat buffer [N]: the one that the server averages, if any is."""
        if self._worker.method.traits.judged_apart:
            return to_numpy(self._worker.averaged(client, message.parameters + update.delta, state).buffer)
        return to_numpy(self._worker.built(client).buffer)  # where ``train`` left it for the next client to replace

    def failure(self) -> Failure | None:
        """The first client task that failed."""
        return next((update for update, _, _ in self._results if isinstance(update, Failure)), None)

    def result(self) -> tuple[TrainedChunk, list[Any]]:
        """The chunk's result and its outputs, in the order of :meth:`Returned.outputs`."""
        returned = self._chunk.returned
        updates, states, seconds = zip(*self._results, strict=True)
        outputs: list[Any] = [*(states if returned.states else ()), *self._models]
        if returned.sums_stay:
            outputs.append(self._total.total())
        sums = () if returned.sums_stay else self._total.nodes()
        return TrainedChunk(updates, sums, seconds, self._marks.found(), tuple(self._digests)), outputs


def _train_one(
    worker: Worker, task: ClientTask, message: Message, state: ClientState | None, keeps: bool, marks: Marks
) -> tuple[Update | Failure, ClientState | None]:
    """One client task; an exception or a non-finite update becomes a Failure and leaves the client state as it was.

    Raises:
        torch.OutOfMemoryError, MemoryError: too many tasks share a GPU or a machine, or this one is too large for it.
    """
    stage = "model"
    marks("load", task.client)
    try:
        model = worker.built(task.client)
        stage = "data"
        samples = worker.data(task.client).samples
        too_few = too_few_samples(model.module, samples, task.training.freeze_batchnorm)
        if too_few:
            return Failure(task.client, "data", too_few), state
        if keeps and state is None:
            stage = "init_client"
            state = worker.first_state(task.client)
        stage = "train"
        marks(stage, task.client)
        seed_globals(task, worker.own_code)
        before = process_state.snapshot() if worker.own_code else None
        update, after = worker.train(task, message, state)
        if before is not None and (changed := process_state.put_back(before)):
            return Failure(task.client, stage, changed), state
        stage = "update"
        marks(stage, task.client)
        reason = unusable(update, after, model, worker.objective.columns, worker.config)
        return (Failure(task.client, stage, reason), state) if reason else (update, after)
    except (Exception, SystemExit) as error:
        if is_out_of_memory(error):
            raise  # the machine's, not a client's
        return Failure(task.client, stage, reason_of(error), traceback.format_exc()), state


@contextmanager
def kept_globals(own_code: bool) -> Iterator[None]:
    """Put torch's global streams back as they were, once for a whole chunk: a sixteenth of a small task.

    Args:
        own_code: Python's and NumPy's too.
    """
    if own_code:
        with seeds.kept_streams():
            yield
        return
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if _on_gpu() else []):
        yield


def seed_globals(task: ClientTask, own_code: bool, purpose: str = "global") -> None:
    """Give what draws from torch's global streams (dropout) a stream of this task.

    Args:
        own_code: what draws from Python's and NumPy's too.
        purpose: the name of the stream.
    """
    seed = seeds.number(task.seed, purpose, task.round, task.client)
    # Not torch.manual_seed: it formats a stack trace for every device that is not there, longer than a small task.
    torch.default_generator.manual_seed(seed)
    if own_code:
        seeds.reseed(seed)
    if _on_gpu():
        torch.cuda.manual_seed(seed)


def _on_gpu() -> bool:
    return bool(torch.cuda.is_initialized())


def too_few_samples(module: torch.nn.Module, samples: int, frozen: bool) -> str:
    """Why a client with this number of training samples cannot train, and what to do; empty if it can.

    ``frozen``: BatchNorm takes no statistics of a batch (``training.freeze_batchnorm``).
    """
    if samples == 0:
        return "this client has no training sample; raise workload.min_samples or lower workload.clients"
    if samples == 1 and has_batch_norm(module) and not frozen:
        return (
            "this client has one training sample, and the model's BatchNorm needs at least two to compute a variance; "
            "raise workload.min_samples, lower workload.clients, or take a model without BatchNorm"
        )
    return ""
