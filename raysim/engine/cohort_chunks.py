"""Cuts a round's cohort into chunks: how large they are, which clients are merged, and where their sums stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from raysim.aggregators.means import node_count
from raysim.client_side.fedsgd import contradiction, group_size, possible, worth_it
from raysim.engine.tree_reduce import stays_on_workers
from raysim.exchange.payload import Returned
from raysim.exchange.pool_protocol import cut, power_of_two

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.engine.observer import RunNotes
    from raysim.engine.round_plan import RoundPlan
    from raysim.method import Message


@dataclass(frozen=True)
class Chunks:
    """A cohort in chunks, in client order."""

    groups: list[list[int]]
    """The clients of each remote call."""
    merged: int
    """How many neighbors are merged where each takes a single step; 1: none."""
    returned: Returned
    """Parts of a chunk's results that travel."""


class Chunker:
    """Plans the chunks of every round.

    Args:
        merges: whether clients that take a single step may be merged (raysim/client_side/fedsgd.py).
    """

    def __init__(self, config: RunConfig, worker: Worker, merges: bool) -> None:
        self._config = config
        self.merges = merges
        self._sums = worker.method.traits.weighted_mean and not config.timing.stale  # which are weighted one by one
        self._keeps, self._state_bytes = worker.first_state(0) is not None, worker.state_bytes(0)
        self.epoch_seconds = 0.0
        """Seconds of a local epoch of a client task in the last round; 0 before the first."""

    def chunks(self, plan: RoundPlan, messages: Mapping[int, Message], slots: int) -> Chunks:
        """The chunks of a round whose participants are sent these messages."""
        size = next(iter(messages.values())).parameters.size
        sums = self._sums
        merged = self._merged(plan, messages)
        bytes_each = self._state_bytes + 4 * size * ((not sums) + plan.decomposes)
        costs = [self.cost(samples) for samples in plan.samples.values()]
        seconds_each = self.epoch_seconds * plan.local_epochs
        groups = cut(plan.clients, slots, self._config.engine.block_size, bytes_each, merged, costs, seconds_each)
        firsts = accumulate(map(len, groups), initial=0)
        nodes = sum(node_count(first, len(group)) for first, group in zip(firsts, groups, strict=False))
        sums_stay = sums and stays_on_workers(nodes, size)
        if sums_stay:  # groups of neighbors are nodes of the tree only if all chunks have one size, a power of two
            length = self._config.engine.block_size or power_of_two(max(map(len, groups)) // 2)
            groups = cut(plan.clients, slots, length, 0, merged)
        return Chunks(groups, merged, Returned(sums, sums_stay, self._keeps, plan.decomposes))

    def cost(self, samples: int) -> int:
        """How long a local epoch of a client with this number of samples is, relative to others'."""
        return 1 if self._config.training.steps_per_epoch else max(1, samples)

    def _merged(self, plan: RoundPlan, messages: Mapping[int, Message]) -> int:
        """How many neighbors are merged; 1: none."""
        if not self.merges or plan.decomposes:  # which asks for each client's model
            return 1
        if len({id(message.parameters) for message in messages.values()}) > 1:
            return 1  # clients start from different parameters
        training = self._config.training
        size = group_size(training, plan.local_epochs, len(plan.samples))
        return size if size > 1 and worth_it(training, [*plan.samples.values()], size) else 1


def merges_single_steps(config: RunConfig, worker: Worker, least_epochs: int, notes: RunNotes) -> bool:
    """Whether clients that take a single step in a round may be merged in this run, which is noted.

    Args:
        least_epochs: local epochs of the run's shortest round.
    """
    if least_epochs > 1 or config.timing.stale or not possible(worker):
        return False
    if why_not := contradiction(worker):
        notes.note(why_not)
        return False
    notes.folder.log("clients that take a single step in a round are merged (--engine.merge_single_steps)")
    return True
