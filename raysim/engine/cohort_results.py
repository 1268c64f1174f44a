"""Gathers what the chunks of a round return, in any order, and gives it in client order."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregators.means import PairwiseSum
from raysim.method import Update, Updates

if TYPE_CHECKING:
    from raysim.engine.backend import Done
    from raysim.engine.client_task import TrainedChunk
    from raysim.engine.cohort_chunks import Chunks
    from raysim.engine.round_plan import RoundPlan
    from raysim.engine.update_spill import UpdateSpill
    from raysim.method import Vector


class CohortResults:
    """The results of one round's chunks."""

    def __init__(self, plan: RoundPlan, chunks: Chunks, spill: UpdateSpill) -> None:
        self._plan, self._chunks, self._spill = plan, chunks, spill
        self._trained: list[TrainedChunk | None] = [None] * len(chunks.chunks)
        self._total, self._added = PairwiseSum(), 0
        self.states: dict[int, Any] = {}
        """Handle of each participant's new state, where clients keep something."""
        self.models: dict[int, Any] = {}
        """Handle of each participant's whole trained model, in a round whose loss is decomposed."""
        self.sums: list[Any] = [None] * len(chunks.chunks)
        """Handle of each chunk's sum, where sums stay on the workers."""
        self.busy, self.tasks = 0.0, 0
        """Seconds that workers were at work, added up, and how many client tasks have come back."""

    def receive(self, done: Done) -> TrainedChunk:
        """Take what a chunk returned; its arrays may move to a file."""
        trained: TrainedChunk = self._spill.take(done.result)
        self._trained[done.index] = trained
        self.busy += done.seconds
        self.tasks += len(trained.updates)
        self._file_outputs(done, trained)
        return trained

    def _file_outputs(self, done: Done, trained: TrainedChunk) -> None:
        clients, returned = self._chunks.chunks[done.index].clients, self._chunks.returned
        good = [isinstance(update, Update) for update in trained.updates]
        outputs = iter(done.outputs)
        # In the order in which a chunk returns them (raysim/engine/client_task.py).
        for wanted, handles in ((returned.states, self.states), (returned.models, self.models)):
            if wanted:
                own = [next(outputs) for _ in clients]
                handles |= compress(zip(clients, own, strict=True), good)
        if returned.sums_stay:
            self.sums[done.index] = next(outputs)

    def add_up(self) -> None:
        """Add the sums that have arrived, as far as the order of clients allows, so that few wait."""
        while self._added < len(self._trained) and (following := self._trained[self._added]) is not None:
            for vector, positions in following.sums:
                self._total.add(vector, positions)
            self._trained[self._added] = replace(following, sums=())
            self._added += 1

    def total(self) -> Vector | None:
        """Σ_i m_i Δ_i [d] of the sums that came with the results."""
        return self._total.total()

    def updates(self) -> tuple[Updates, list[float]]:
        """The updates in client order, without those of clients that failed, and how long each client task took."""
        good = [
            (client, update, seconds)
            for chunk, trained in zip(self._chunks.chunks, self._trained, strict=True)
            if trained is not None
            for client, update, seconds in zip(chunk.clients, trained.updates, trained.seconds, strict=True)
            if isinstance(update, Update)
        ]
        clients = tuple(client for client, _, _ in good)
        samples = np.array([self._plan.samples[client] for client in clients], dtype=np.int64)
        updates = Updates(clients, samples, tuple(update for _, update, _ in good), staleness=(0,) * len(good))
        return updates, [seconds for *_, seconds in good]
