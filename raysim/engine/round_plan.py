"""Plans a round before it starts: participants, local epochs, learning rate, evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from raysim import schedule, seeds
from raysim.cohort import cohort_of

if TYPE_CHECKING:
    from raysim.cohort import Cohort
    from raysim.config.run_config import RunConfig
    from raysim.samplers._sampler import Sampler
    from raysim.virtual_time.clock import VirtualClock
    from raysim.workloads.federated_data import Federation


@dataclass(frozen=True)
class RoundPlan:
    """Who takes part in a round, what these clients do, and what is done with the result."""

    number: int
    """Counted from 1."""
    local_epochs: int
    learning_rate: float
    samples: Mapping[int, int]
    """Training samples of each participant, by client in ascending order; empty for a Poisson cohort of none."""
    cohort: Cohort
    evaluates: bool
    decomposes: bool
    begins: Mapping[int, float]
    """Virtual seconds at which each participant's task begins; empty without virtual time."""
    steps: Mapping[int, int]
    """The server step that takes each participant's update: this round's, but for those that are stale when it does."""
    ends: float
    """Virtual seconds of the server step that ends the round; 0 without virtual time."""

    @property
    def clients(self) -> tuple[int, ...]:
        """The participants, ascending."""
        return tuple(self.samples)


class Planner:
    """Makes the plan of any round.

    Args:
        clock: the run's virtual time, which then says who takes part; None: it has none.
    """

    def __init__(self, config: RunConfig, federation: Federation, clock: VirtualClock | None) -> None:
        self._config, self._federation, self._clock = config, federation, clock
        self.intervals = schedule.planned_intervals(config)
        """Local epochs of every round."""
        self._epochs_before = list(accumulate(self.intervals, initial=0))
        self._population = schedule.population(config, federation.clients)
        # Pooled data has one client, which is there from the start.
        self._joins = () if config.method.traits.pooled else config.schedule.joins

    def plan(self, number: int, after: int = 0) -> RoundPlan:
        """The plan of a round, counted from 1; in virtual time of tasks whose updates come with a step > ``after``."""
        config, existing, options = self._config, self._federation, self._config.schedule
        epochs, population = self._epochs_before[number - 1], self._population
        sampler: Sampler = options.sampler
        present = schedule.joined(epochs, population.trainable, self._joins, options.join_every)
        if self._clock is None:
            generator = seeds.numpy_generator(config.seed, "participants", number)
            drawn: list[int] = sampler.cohort(number, present, generator).tolist()
            cohort = clients = [client for client in drawn if client in population]
            begins, ends, steps = dict[int, float](), 0.0, dict.fromkeys(clients, number)
        else:
            tasks = self._clock.tasks(number, after)
            begins = {flight.client: flight.start for flight, _ in tasks}
            steps = {flight.client: step for flight, step in tasks}
            cohort, clients, ends = self._clock.cohort(number), [*begins], self._clock.step(number).time
        every = config.evaluation.decompose_every
        return RoundPlan(
            number,
            self.intervals[number - 1],
            config.training.rate_in(number),
            {client: existing.samples(client) for client in clients},
            cohort_of(existing, cohort, present, population.trainable, sampler.poisson_rate, population.without),
            evaluates=number % config.evaluation.every == 0 or number == len(self.intervals),
            decomposes=every > 0 and number % every == 0,
            begins=begins,
            steps=steps,
            ends=ends,
        )
