"""Visits: the remote task that trains a block of clients."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from aggregators.means import PairwiseSum
from raysim import seeds, tree
from raysim.clock import Mark, Marks
from raysim.method import Message, Update, Vector
from raysim.packing import Packed
from raysim.parameters import FlatModel, finite
from raysim.training import Visit
from raysim.worker import Worker
from workloads.models.classifier import has_batch_norm

NOTHING: Vector = np.zeros(0, np.float32)


@dataclass(frozen=True)
class Failure:
    """A visit that gave no usable update."""

    client: int
    stage: str
    reason: str
    traceback: str = ""


@dataclass(frozen=True)
class TrainedBlock:
    """The updates (or failures) of a block in client order, their sum if the method asks for no more, and seconds."""

    updates: tuple[Update | Failure, ...]
    weighted_total: Vector | None
    """Σ m_i Δ_i [d], unless it is an output."""
    seconds: tuple[float, ...]
    marks: tuple[Mark, ...] = ()
    """Where its time went, if that is asked for."""


@dataclass(frozen=True)
class TrainBlock:
    """Visits of a few clients, one after another."""

    visits: tuple[Visit, ...]
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

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[TrainedBlock, list[Any]]:
        updates: list[Update | Failure] = []
        states: list[Any] = []
        seconds = []
        total = PairwiseSum()
        marks = Marks(worker.config.engine.profile)
        each = zip(self.visits, self.samples, self._visited(worker, inputs, marks), strict=True)
        for visit, samples, (update, state, spent) in each:
            if self.summed:
                marks("sum", visit.client)
                total.add(update.delta * np.float32(samples) if isinstance(update, Update) else None)
            if isinstance(update, Update) and not self.each:
                update = Update(NOTHING, update.metrics, update.extra)
            seconds.append(spent)
            updates.append(update)
            states.append(state)
        outputs = states if self.keeps else []
        whole = total.total()
        if self.sum_stays:
            outputs, whole = [*outputs, whole], None
        return TrainedBlock(tuple(updates), whole, tuple(seconds), marks.found()), outputs

    def _visited(
        self, worker: Worker, inputs: Sequence[Any], marks: Marks
    ) -> Iterator[tuple[Update | Failure, Any, float]]:
        """Update or failure, state and seconds of every visit, in order."""
        together = worker.config.engine.vectorise
        for start in range(0, len(self.visits), together or 1):
            group = slice(start, start + (together or 1))
            visits = self.visits[group]
            messages = [message.unpack(inputs) for message in self.packed.messages[group]]
            kept = [None if place is None else inputs[place] for place in self.packed.kept[group]]
            if together:
                from raysim.vectorised import visit_together  # late: torch's transformations take a while to import

                yield from visit_together(worker, visits, messages, kept, self.keeps, marks)
            else:
                started = time.perf_counter()
                update, state = _visit(worker, visits[0], messages[0], kept[0], self.keeps, marks)
                yield update, state, time.perf_counter() - started


def _visit(
    worker: Worker, visit: Visit, message: Message, kept: Any, keeps: bool, marks: Marks
) -> tuple[Update | Failure, Any]:
    """One visit; an exception or a non-finite update becomes a Failure and leaves the kept state as it was.

    Raises:
        torch.OutOfMemoryError: too many visits share a GPU, or this one alone is too large for it.
    """
    stage = "data"
    marks("load", visit.client)
    try:
        samples = worker.data(visit.client).samples
        stage = "model"
        model = worker.built(visit.client)
        too_few = too_few_samples(model.module, samples)
        if too_few:
            return Failure(visit.client, "data", too_few), kept
        if keeps and kept is None:
            stage = "init_client"
            kept = worker.first_state(visit.client)
        stage = "train"
        marks(stage, visit.client)
        with seeded_globals(visit):
            update, state = worker.train(visit, message, kept)
        stage = "update"
        marks(stage, visit.client)
        failure = unusable(visit, model, update, state)
        return (failure, kept) if failure else (update, state)
    except torch.OutOfMemoryError:
        raise  # the GPU's, not the client's
    except Exception as error:
        return Failure(visit.client, stage, f"{type(error).__name__}: {error}", traceback.format_exc()), kept


def unusable(visit: Visit, model: FlatModel, update: Update, state: Any) -> Failure | None:
    """The failure that a non-finite update is; ``model`` is as the visit left it."""
    # The model and the state are looked at too: what a personal method keeps is not part of the update.
    if tree.finite((update.delta, update.extra, state)) and finite(model.buffer):
        return None
    where = [entry.name for entry in model.entries if not finite(model.buffer[entry.start : entry.stop])]
    reason = (
        f"its update holds NaN or infinite values (first in {where[0] if where else 'what it returns'}); "
        "nothing of it was aggregated. Lower training.learning_rate, or look at this client's data"
    )
    return Failure(visit.client, "update", reason)


@contextmanager
def seeded_globals(visit: Visit) -> Iterator[None]:
    """Give what draws from torch's global stream (dropout) a stream of this visit, and put the old one back."""
    seed = seeds.number(visit.seed, "global", visit.round, visit.client)
    on_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if on_gpu else []):
        # Not torch.manual_seed: it formats a stack trace for every device that is not there, longer than a small visit.
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            torch.cuda.manual_seed(seed)
        yield


def too_few_samples(module: torch.nn.Module, samples: int) -> str:
    """Why a client with so many training samples cannot train, and what to do; empty if it can."""
    if samples == 0:
        return "this client has no training sample; raise workload.min_samples or lower workload.clients"
    if samples == 1 and has_batch_norm(module):
        return (
            "this client has one training sample, and the model's BatchNorm needs at least two to compute a variance; "
            "raise workload.min_samples, lower workload.clients, or take a model without BatchNorm"
        )
    return ""
