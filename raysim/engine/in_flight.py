"""Client tasks under way in virtual time, in runs whose server steps take updates of several versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregators.means import PairwiseSum
from raysim.engine.cohort_run import Collected
from raysim.engine.payload import Packer
from raysim.engine.staleness import adjusted
from raysim.errors import RaysimError
from raysim.method import NOTHING, Updates

if TYPE_CHECKING:
    from raysim.config.timing import Timing
    from raysim.engine.backend import Pool
    from raysim.engine.cohort_run import Collector, Prepared
    from raysim.engine.round_plan import RoundPlan
    from raysim.engine.virtual_clock import VirtualClock
    from raysim.method import Message, Update, Vector


@dataclass(frozen=True)
class _Result:
    """The result of one client task."""

    update: Update
    samples: int
    row: dict[str, Any]
    state: Any
    """Handle of the client's new state; None where clients keep nothing."""
    base: Vector
    """The parameters [d] of the message that it started from."""


class InFlight:
    """The client tasks under way in virtual time, by the server step that takes their updates.

    They are sent to the pool when they begin, so that they run beside whatever the driver does until that step, those
    of the next step first. A client's new state counts from the arrival of its update on. Nothing here is saved: after
    a return to a checkpoint these tasks are begun again, from the server's earlier states in it.

    Args:
        clock: says which step takes the update of each task.
        sums: whether the method's ``aggregate`` needs only the weighted mean (``Traits.weighted_mean``).
    """

    def __init__(self, timing: Timing, clock: VirtualClock, sums: bool, collector: Collector, pool: Pool) -> None:
        self._timing, self._clock, self._sums = timing, clock, sums
        self._collector, self._pool = collector, pool
        self._prepared: dict[int, list[Prepared]] = {}

    def begin(self, plan: RoundPlan, messages: Mapping[int, Message], states: Mapping[int, Any]) -> None:
        """Send a round's client tasks."""
        packer, taken = Packer(self._pool), self._clock.taken(plan.number)
        for step in sorted({taken[client] for client in plan.clients}):
            own = {client: samples for client, samples in plan.samples.items() if taken[client] == step}
            prepared = self._collector.prepare(replace(plan, samples=own), messages, states, packer, step)
            self._prepared.setdefault(step, []).append(prepared)
            self._pool.send_ahead(prepared.jobs)

    def take(self, number: int, current: Callable[[int], Vector]) -> Collected:
        """The updates that arrive for a server step, as a round's, weighted by their staleness.

        Args:
            number: the step's.
            current: the parameters [d] that a client would be sent now.

        Raises:
            RaysimError: the tasks of all of them failed.
        """
        step = self._clock.step(number)
        prepared = self._prepared.pop(step.number, [])
        collected = self._collector.finish(prepared)
        found: dict[int, _Result] = {}
        for begun, own in zip(prepared, collected, strict=True):
            found |= _results(begun, own)
        staleness = {flight.client: step.number - 1 - flight.version for flight in step.arrivals}
        results = {client: found[client] for client in staleness if client in found}
        if not results:
            raise RaysimError(f"round {step.number}: every client failed, so there is nothing to aggregate")
        each = [
            adjusted(result.update, self._timing, staleness[client], result.base, current(client))
            for client, result in results.items()
        ]
        samples = np.array([result.samples for result in results.values()], np.int64)
        missed = tuple(staleness[client] for client in results)
        updates = Updates(tuple(results), samples, tuple(each), staleness=missed)
        if self._sums:
            total = PairwiseSum()
            for update, count in zip(each, samples.tolist(), strict=True):
                total.add(update.delta * np.float32(count))
            empty = tuple(replace(update, delta=NOTHING) for update in each)
            updates = replace(updates, each=empty, weighted_total=total.total())
        states = {client: result.state for client, result in results.items() if result.state is not None}
        rows = [result.row | {"round": step.number} for result in results.values()]
        return Collected(updates, states, {}, rows, sum(own.busy for own in collected), self._pool.slots)

    def clear(self) -> None:
        """Forget everything: the run goes back, or ends."""
        self._prepared.clear()
        self._pool.drop_ahead()


def _results(prepared: Prepared, collected: Collected) -> dict[int, _Result]:
    """By client, without those that failed."""
    updates, messages = collected.updates, prepared.messages
    return {
        client: _Result(update, int(samples), row, collected.states.get(client), messages[client].parameters)
        for client, samples, update, row in zip(
            updates.clients, updates.samples, updates.each, collected.rows, strict=True
        )
    }
