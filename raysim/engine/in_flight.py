"""Updates that were computed and have not yet arrived, in runs whose server steps take updates of several versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregators.means import PairwiseSum
from raysim.engine.cohort_run import Collected
from raysim.engine.staleness import adjusted
from raysim.errors import RaysimError
from raysim.method import NOTHING, Updates

if TYPE_CHECKING:
    from raysim.config.timing import Timing
    from raysim.engine.timeline import ServerStep
    from raysim.method import Message, Update, Vector


@dataclass(frozen=True)
class _Result:
    """What one client task gave."""

    update: Update
    samples: int
    row: dict[str, Any]
    state: Any
    """Handle of the client's new state; None where clients keep nothing."""
    base: Vector
    """The parameters [d] of the message that it started from."""


class InFlight:
    """The results of client tasks under way in virtual time, by client.

    A client's new state counts from the arrival of its update on. Nothing here is saved: after a return to a checkpoint
    these tasks are computed again, from the server's earlier states in it.

    Args:
        timing: the run's rules.
        sums: whether the method's ``aggregate`` needs only the weighted mean (``Traits.weighted_mean``).
    """

    def __init__(self, timing: Timing, sums: bool) -> None:
        self._timing, self._sums = timing, sums
        self._results: dict[int, _Result] = {}

    def put(self, messages: Mapping[int, Message], collected: Collected) -> None:
        """Keep what a round's client tasks gave."""
        updates = collected.updates
        for client, samples, update, row in zip(
            updates.clients, updates.samples, updates.each, collected.rows, strict=True
        ):
            self._results[client] = _Result(
                update, int(samples), row, collected.states.get(client), messages[client].parameters
            )

    def take(self, step: ServerStep, current: Callable[[int], Vector]) -> Collected:
        """The updates that arrive for a step, as a round's, weighted by their staleness.

        Args:
            step: the server's.
            current: the parameters [d] that a client would be sent now.

        Raises:
            RaysimError: the tasks of all of them failed.
        """
        staleness = {flight.client: step.number - 1 - flight.version for flight in step.arrivals}
        results = {client: self._results.pop(client) for client in staleness if client in self._results}
        if not results:
            raise RaysimError(f"round {step.number}: every client failed, so there is nothing to aggregate")
        each = [
            adjusted(result.update, self._timing, staleness[client], result.base, current(client))
            for client, result in results.items()
        ]
        samples = np.array([result.samples for result in results.values()], np.int64)
        updates = Updates(tuple(results), samples, tuple(each))
        if self._sums:
            total = PairwiseSum()
            for update, count in zip(each, samples.tolist(), strict=True):
                total.add(update.delta * np.float32(count))
            each = [replace(update, delta=NOTHING) for update in each]
            updates = Updates(tuple(results), samples, tuple(each), total.total())
        states = {client: result.state for client, result in results.items() if result.state is not None}
        rows = [result.row | {"round": step.number} for result in results.values()]
        return Collected(updates, states, {}, rows, busy=0.0, slots=1)

    def clear(self) -> None:
        """Forget everything: the run goes back."""
        self._results.clear()
