"""The utility of coalitions of clients: the measure of a model that they alone have trained."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from raysim import portable, schedule
from raysim.client_side.device import device_of
from raysim.config.config_file import stored_text
from raysim.config.run_config import with_sections
from raysim.contribution.task_store import StoringWorker, TaskStore
from raysim.driver.federation_checks import check_federation
from raysim.engine.evaluation import evaluate_round
from raysim.engine.inline_backend import InlinePool
from raysim.engine.load_federation import load_federation
from raysim.engine.observer import RunNotes, Silent
from raysim.engine.rounds import Rounds
from raysim.errors import ConfigError
from raysim.results.measures import Measure, find
from raysim.storage.run_folder import RunFolder
from raysim.workloads.parallel_map import Sequential

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.contribution.side_by_side import Workers
    from raysim.contribution.task_store import Store
    from raysim.engine.checkpointing import State

Coalition = frozenset[int]
NEVER = 10**9


class Coalitions:
    """Trains coalitions from the same initial values with the same streams, in this process.

    The clients outside are left out (``schedule.without``). Every model is judged as the whole run's is, on the same
    test samples, those of the clients outside included.

    Args:
        config: the run's, placed in this process.
        measure: a column of the rounds table.
        known: utilities that were computed before.
        keep: is told of every new one.
        store: of client tasks; None: one of its own.
        workers: compute what :meth:`ahead` is told of; None: this process does.
    """

    def __init__(
        self,
        config: RunConfig,
        measure: str,
        known: dict[Coalition, float],
        keep: Callable[[Coalition, float], None] = lambda coalition, utility: None,
        *,
        store: Store | None = None,
        workers: Workers | None = None,
    ) -> None:
        if config.engine.portable:
            portable.check()
        if config.method.traits.pooled:
            raise ConfigError("the method trains on all data in one place: there are no clients to leave out.")
        found = find(measure)
        if found.how != "last":
            raise ConfigError(f"--measure {measure}: the models are judged once, at their end. Say {found.column}.")
        self.measure: Measure = found
        every = config.evaluation.every if config.evaluation.ends_early else NEVER
        evaluation = replace(config.evaluation, every=every, decompose_every=0)
        engine = replace(config.engine, proof="none", checkpoint_every=NEVER, repeat_check="never")
        self._config = with_sections(config, evaluation=evaluation, engine=engine)
        self.federation = load_federation(config, Sequential())
        population = schedule.population(config, self.federation.clients)
        self.clients: tuple[int, ...] = tuple(population.members())
        if len(self.clients) > 1:  # what goes with no client left out is said at once
            check_federation(self._without(frozenset(self.clients[:1])), self.federation)
        self._known, self._keep, self._workers = known, keep, workers
        self._store = TaskStore() if store is None else store
        self._worker = StoringWorker(self._config, self.federation, device_of(config.engine), self._store)

    @property
    def computed(self) -> int:
        """Number of coalitions whose utility is known."""
        return len(self._known)

    @property
    def tasks(self) -> tuple[int, int]:
        """How many client tasks were computed, and how many were taken from the store instead."""
        computed, taken = self._store.computed, self._store.taken
        if self._workers is None:
            return computed, taken
        return computed + self._workers.computed, taken + self._workers.taken

    def ahead(self, coalitions: Sequence[Coalition]) -> None:
        """Compute the utilities of these coalitions, in their order, unless known; errors as of :meth:`utility`."""
        new = [coalition for coalition in dict.fromkeys(coalitions) if coalition not in self._known]
        utilities = self._workers.utilities(new) if self._workers else map(self._computed, new)
        for coalition, utility in zip(new, utilities, strict=True):
            self._known[coalition] = utility
            self._keep(coalition, utility)

    def utility(self, coalition: Coalition) -> float:
        """The measure of what a coalition has trained, a loss with its sign turned; of none, that of the first model.

        Raises:
            RaysimError: a run failed, or the measure is not measured in it.
        """
        self.ahead([coalition])
        return self._known[coalition]

    def _computed(self, coalition: Coalition) -> float:
        with tempfile.TemporaryDirectory(prefix="raysim-coalition-") as place:
            path = Path(place) / "run"
            config = self._without(coalition or frozenset(self.clients))
            folder = RunFolder.create(path, stored_text(config), {})
            pool = InlinePool(self._worker)
            rounds = Rounds(config, self._worker, pool, RunNotes(folder, Silent()))
            if coalition:
                rounds.run()
            return self._judged(rounds.state, pool)

    def _judged(self, state: State, pool: InlinePool) -> float:
        drifting = self._config.events.drift != "none"  # then each model is judged on the data of the last round
        judged = replace(state, round=len(schedule.planned_intervals(self._config))) if drifting else state
        found = evaluate_round(self._config, pool, judged, [], Silent().note)
        value = found.get(self.measure.column)
        if value is None or value != value:
            raise ConfigError(
                f"--measure {self.measure.name}: it is not measured in this run. Measured: {', '.join(found)}."
            )
        if math.isinf(value):
            raise ConfigError(
                f"--measure {self.measure.name}: it is infinite for a model that some of the clients trained, so that "
                "contributions are no numbers. Choose accuracy, say."
            )
        return self.larger_is_better(value)

    def larger_is_better(self, value: float) -> float:
        """A value of the measure as a utility: a loss with its sign turned."""
        return -float(value) if self.measure.best == "smallest" else float(value)

    def _without(self, coalition: Coalition) -> RunConfig:
        """The settings of a run of this coalition alone."""
        outside = {*self._config.schedule.without, *self.clients} - coalition
        return with_sections(self._config, schedule=replace(self._config.schedule, without=tuple(sorted(outside))))


def utility_in(config: RunConfig, measure: str, store: Store) -> Callable[[Coalition], float]:
    """The utility of coalitions in another process, whose client tasks go through a store; arguments as above."""
    return Coalitions(config, measure, {}, store=store).utility
