"""The jobs of a cohort's client tasks, and what they have returned so far, in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

from raysim.aggregators.means import PairwiseSum
from raysim.method import Update

if TYPE_CHECKING:
    from raysim.engine.cohort_chunks import Chunks
    from raysim.engine.round_plan import RoundPlan
    from raysim.exchange.payload import TrainedChunk
    from raysim.exchange.pool_protocol import Done, Job
    from raysim.method import Message, Vector


class CohortResults:
    """Client tasks of one round, as jobs that may have been sent, and their results."""

    def __init__(self, plan: RoundPlan, messages: Mapping[int, Message], chunks: Chunks, jobs: Sequence[Job]) -> None:
        self.plan, self.messages, self.chunks, self.jobs = plan, messages, chunks, jobs
        self.updates: dict[int, Update] = {}
        """Results by client, without those that failed."""
        self.digests: dict[int, Mapping[str, str]] = {}
        """Digests of each update and new state, by column, where they are asked for."""
        self.seconds: dict[int, float] = {}
        """How long each of their client tasks took."""
        self.states: dict[int, Any] = {}
        """Handle of each client's new state, where clients keep something."""
        self.models: dict[int, Any] = {}
        """Handle of each client's whole trained model, in a round whose loss is decomposed."""
        self.sums: list[Any] = [None] * len(jobs)
        """Handle of each chunk's sum, where sums stay on the workers."""
        self.busy = 0.0
        """Seconds that workers were at work, added up."""
        self._arrived: dict[int, TrainedChunk] = {}
        """Chunks whose sums wait for those of earlier clients, by place."""
        self._total, self._added = PairwiseSum(), 0

    def receive(self, place: int, trained: TrainedChunk, done: Done) -> None:
        """Take what the chunk at a place returned."""
        clients, returned = self.chunks.groups[place], self.chunks.returned
        self.busy += done.seconds
        self._arrived[place] = trained
        good = [isinstance(update, Update) for update in trained.updates]
        outputs = iter(done.outputs)
        # In the order in which a chunk returns them (raysim/client_side/train_chunk.py).
        for wanted, handles in ((returned.states, self.states), (returned.models, self.models)):
            if wanted:
                own = [next(outputs) for _ in clients]
                handles |= compress(zip(clients, own, strict=True), good)
        if returned.sums_stay:
            self.sums[place] = next(outputs)
        self.seconds |= compress(zip(clients, trained.seconds, strict=True), good)
        if returned.digests:
            self.digests |= zip(clients, trained.digests, strict=True)
        for client, update in zip(clients, trained.updates, strict=True):
            if isinstance(update, Update):
                self.updates[client] = update

    def add_up(self) -> None:
        """Add the sums that have arrived, as far as the order of clients allows, so that few wait."""
        while self._added in self._arrived:
            for vector, positions in self._arrived.pop(self._added).sums:
                self._total.add(vector, positions)
            self._added += 1

    def total(self) -> Vector | None:
        """Σ_i m_i Δ_i [d] of the sums that came with the results."""
        return self._total.total()
