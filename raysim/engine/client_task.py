"""Visits: the remote task that trains a block of clients."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch

from aggregators.means import PairwiseSum
from raysim import seeds
from raysim.engine.backend import power_of_two
from raysim.engine.client_state import ClientState
from raysim.engine.failure import Failure
from raysim.engine.fedsgd import Merged, take_one_step, train_merged
from raysim.engine.payload import Packed
from raysim.engine.timing import Mark, Marks
from raysim.engine.worker import Worker
from raysim.flat_model import FlatModel, as_tensor, finite, to_numpy
from raysim.method import NOTHING, ClientTask, Message, Update, Vector
from raysim.storage import pytree
from workloads.models.classifier import has_batch_norm

OneVisit: TypeAlias = "tuple[Update | Failure, ClientState | None, float]"
"""Update or failure, state and seconds."""


@dataclass(frozen=True)
class TrainedBlock:
    """The updates (or failures) of a block in client order, their sums if the method asks for no more, and seconds."""

    updates: tuple[Update | Failure, ...]
    sums: tuple[tuple[Vector | None, int], ...]
    """Σ m_i Δ_i [d] over each of a few nodes of the tree over all clients (:meth:`PairwiseSum.nodes`), unless they are
    an output."""
    seconds: tuple[float, ...]
    marks: tuple[Mark, ...] = ()
    """Where its time went, if that is asked for."""


@dataclass(frozen=True)
class TrainBlock:
    """Visits of a few clients, one after another."""

    first: int
    """Where the first of them stands among the round's participants."""
    visit: ClientTask
    """All visits, but for client and classes: one is packed in less time than all."""
    clients: tuple[int, ...]
    packed: Packed
    samples: tuple[int, ...]
    keeps: bool
    """Whether clients of this method keep anything: then their new states are the outputs."""
    summed: bool
    """Return Σ m_i Δ_i."""
    sum_stays: bool
    """Return it as the last output, to stay where it is."""
    each: bool
    """Return every Δ_i."""
    whole: bool = False
    """Return every client's whole trained model as an output, to stay where it is (None of a client that failed)."""
    merged: int = 1
    """How many neighbours are merged where each takes a single step: a power of two, ``first`` a multiple of it."""

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[TrainedBlock, list[Any]]:
        updates: list[Update | Failure] = []
        states: list[ClientState | None] = []
        models: list[Vector | None] = []
        seconds: list[float] = []
        worker.in_round(self.visit.round)
        visits = [
            replace(self.visit, client=client, classes=worker.federation.task(client).classes)
            for client in self.clients
        ]
        total = PairwiseSum(self.first)
        marks = Marks(worker.config.engine.profile)
        with kept_globals():
            merged: Merged | Failure | None = None
            for group in self._groups():
                merged = self._merge(worker, visits, inputs, group, marks, isinstance(merged, Merged))
                if isinstance(merged, Merged):
                    count = len(merged.updates)
                    total.add(merged.total, count)
                    updates += merged.updates
                    states += [None] * count
                    seconds += [merged.seconds / count] * count
                    continue
                each = self._visited(worker, visits, inputs, group, marks)
                if merged is not None:
                    each = iter(_with_failure(merged, list(each), self.clients[group]))
                for client, samples, (update, state, spent) in zip(
                    self.clients[group], self.samples[group], each, strict=True
                ):
                    if self.summed:
                        marks("sum", client)
                        total.add(update.delta * np.float32(samples) if isinstance(update, Update) else None)
                    if self.whole:  # ``train`` leaves it in the model, where the next visit has not yet been
                        good = isinstance(update, Update)
                        models.append(to_numpy(worker.built(client).buffer) if good else None)
                    if isinstance(update, Update) and not self.each:
                        update = Update(NOTHING, update.metrics, update.extra)
                    updates.append(update)
                    states.append(state)
                    seconds.append(spent)
        outputs: list[Any] = [*(states if self.keeps else []), *models]
        if self.sum_stays:
            outputs = [*outputs, total.total()]
        sums = () if self.sum_stays else total.nodes()
        return TrainedBlock(tuple(updates), sums, tuple(seconds), marks.found()), outputs

    def _groups(self) -> Iterator[slice]:
        """Neighbours that may be merged, at the end fewer: each is a node of the sum's tree. Or, without any, all."""
        start, count = 0, len(self.clients)
        while start < count:
            stop = count if self.merged == 1 else start + min(self.merged, power_of_two(count - start))
            yield slice(start, stop)
            start = stop

    def _merge(
        self,
        worker: Worker,
        visits: Sequence[ClientTask],
        inputs: Sequence[Any],
        group: slice,
        marks: Marks,
        after_another: bool,
    ) -> Merged | Failure | None:
        """The single steps of several clients, which were all sent the same; otherwise they are to be visited."""
        samples = self.samples[group]
        if self.merged == 1 or len(samples) == 1 or not take_one_step(self.visit.training, samples):
            return None
        parameters = None if after_another else self.packed.messages[0].unpack(inputs).parameters
        return train_merged(worker, visits[group], samples, parameters, marks)

    def _visited(
        self, worker: Worker, visits: Sequence[ClientTask], inputs: Sequence[Any], chosen: slice, marks: Marks
    ) -> Iterator[OneVisit]:
        """Every chosen visit, in order."""
        for visit, packed, place in zip(
            visits[chosen], self.packed.messages[chosen], self.packed.kept[chosen], strict=True
        ):
            message, kept = packed.unpack(inputs), None if place is None else inputs[place]
            started = time.perf_counter()
            update, state = _visit(worker, visit, message, kept, self.keeps, marks)
            yield update, state, time.perf_counter() - started


def _with_failure(failure: Failure, each: list[OneVisit], clients: Sequence[int]) -> list[OneVisit]:
    """The single visits after a merged step that raised: what did so only once, or only there, may not pass unseen,
    because then the results would depend on it."""
    place = clients.index(failure.client)
    if not isinstance(each[place][0], Failure):
        reason = f"{failure.reason}; not so by itself, as all are visited with --engine.merge_single_steps false"
        each[place] = (replace(failure, reason=reason), *each[place][1:])
    return each


def _visit(
    worker: Worker, visit: ClientTask, message: Message, kept: ClientState | None, keeps: bool, marks: Marks
) -> tuple[Update | Failure, ClientState | None]:
    """One visit; an exception or a non-finite update becomes a Failure and leaves the kept state as it was.

    Raises:
        torch.OutOfMemoryError: too many visits share a GPU, or this one alone is too large for it.
    """
    stage = "model"
    marks("load", visit.client)
    try:
        model = worker.built(visit.client)
        stage = "data"
        samples = worker.data(visit.client).samples
        too_few = _too_few_samples(model.module, samples, visit.training.freeze_batchnorm)
        if too_few:
            return Failure(visit.client, "data", too_few), kept
        if keeps and kept is None:
            stage = "init_client"
            kept = worker.first_state(visit.client)
        stage = "train"
        marks(stage, visit.client)
        seed_globals(visit)
        update, state = worker.train(visit, message, kept)
        stage = "update"
        marks(stage, visit.client)
        failure = _unusable(visit, model, update, state)
        return (failure, kept) if failure else (update, state)
    except torch.OutOfMemoryError:
        raise  # the GPU's, not the client's
    except Exception as error:
        return Failure(visit.client, stage, f"{type(error).__name__}: {error}", traceback.format_exc()), kept


def _unusable(visit: ClientTask, model: FlatModel, update: Update, state: ClientState | None) -> Failure | None:
    """The failure that a non-finite update is; ``model`` is as the visit left it."""
    # Where a client keeps something, that and the model are looked at too: they are no part of the update.
    kept = state is None or (pytree.finite(state) and finite(model.buffer))
    if finite(as_tensor(update.delta)) and kept and pytree.finite(update.extra):
        return None
    where = [entry.name for entry in model.entries if not finite(model.buffer[entry.start : entry.stop])]
    reason = (
        f"its update holds NaN or infinite values (first in {where[0] if where else 'what it returns'}); "
        "nothing of it was aggregated. Lower training.learning_rate, or look at this client's data"
    )
    return Failure(visit.client, "update", reason)


@contextmanager
def kept_globals() -> Iterator[None]:
    """Put torch's global streams back as they were, once for a whole block: a sixteenth of a small visit."""
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if _on_gpu() else []):
        yield


def seed_globals(visit: ClientTask) -> None:
    """Give what draws from torch's global streams (dropout) a stream of this visit."""
    seed = seeds.number(visit.seed, "global", visit.round, visit.client)
    # Not torch.manual_seed: it formats a stack trace for every device that is not there, longer than a small visit.
    torch.default_generator.manual_seed(seed)
    if _on_gpu():
        torch.cuda.manual_seed(seed)


def _on_gpu() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _too_few_samples(module: torch.nn.Module, samples: int, frozen: bool) -> str:
    """Why a client with so many training samples cannot train, and what to do; empty if it can.

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
