"""Plans a round before it starts: participants, local epochs, learning rate, evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim import schedule, seeds
from raysim.cohort import cohort_of, samples_of
from raysim.samplers._sampler import Known

if TYPE_CHECKING:
    from raysim.cohort import Cohort
    from raysim.config.run_config import RunConfig
    from raysim.samplers._sampler import Losses, Sampler
    from raysim.virtual_time.clock import VirtualClock
    from raysim.virtual_time.fleet import Choice, Chosen
    from raysim.workloads.federated_data import Federation


Measure = Callable[[int, Sequence[int], float], "Losses"]
"""(round, clients, virtual seconds) -> these clients' losses with the model that the round starts from."""


@dataclass(frozen=True)
class Selection:
    """All that the choice of later cohorts depends on where a sampler looks at losses; it is saved with the run."""

    memory: Any
    """The sampler's."""
    chosen: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """In virtual time, whose events are gone through again when a run goes on: clients of all cohorts, in order."""
    sizes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """The sizes of these cohorts [n]; several are of one round where all clients of a cohort were lost."""
    seconds: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0, np.float64))
    """Virtual seconds that it took to choose each [n]."""

    def cohorts(self) -> list[Chosen]:
        """The recorded choices, in order."""
        parts = np.split(self.chosen, np.cumsum(self.sizes)[:-1]) if len(self.sizes) else []
        return [(part.tolist(), float(seconds)) for part, seconds in zip(parts, self.seconds, strict=True)]

    def with_cohort(self, clients: Sequence[int], seconds: float) -> Selection:
        """With one more choice."""
        return replace(
            self,
            chosen=np.append(self.chosen, np.asarray(clients, np.int64)),
            sizes=np.append(self.sizes, np.int64(len(clients))),
            seconds=np.append(self.seconds, seconds),
        )


def first_selection(config: RunConfig) -> Selection | None:
    """The selection before the first round; None where nothing of it depends on losses."""
    sampler: Sampler = config.schedule.sampler
    return Selection(sampler.first_memory()) if sampler.adaptive else None


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
    known: Known | None = None
    """All that an adaptive sampler was told before it chose; else None."""
    selection: Selection | None = None
    """The selection with this round's choices in it, before the sampler has learned of them."""
    asked: tuple[int, ...] = ()
    """Clients that were sent the model for their losses alone, once for each time."""

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
        self._samples = samples_of(federation)
        self._population = schedule.population(config, federation.clients)
        # Pooled data has one client, which is there from the start.
        self._joins = () if config.method.traits.pooled else config.schedule.joins

    def plan(
        self,
        number: int,
        after: int = 0,
        selection: Selection | None = None,
        measure: Measure | None = None,
    ) -> RoundPlan:
        """The plan of a round, counted from 1; in virtual time of tasks whose updates come with a step > ``after``.

        Args:
            selection: where the sampler is adaptive, that after the round before.
            measure: measures losses for it.
        """
        config, existing, options = self._config, self._federation, self._config.schedule
        epochs, population = self._epochs_before[number - 1], self._population
        sampler: Sampler = options.sampler
        present = schedule.joined(epochs, population.trainable, self._joins, options.join_every)
        choices = _Choices(config, self._samples, number, selection, measure)
        if self._clock is None:
            cohort = clients = [client for client in choices.cohort(present) if client in population]
            begins, ends, steps = dict[int, float](), 0.0, dict.fromkeys(clients, number)
            steps_take = None
        else:
            if selection is not None:
                self._clock.advance(number, selection.cohorts, partial(choices.in_virtual_time, self._clock))
            tasks = self._clock.tasks(number, after)
            begins = {flight.client: flight.start for flight, _ in tasks}
            steps = {flight.client: step for flight, step in tasks}
            cohort, clients, ends = self._clock.cohort(number), [*begins], self._clock.step(number).time
            steps_take = config.timing.rule.updates(schedule.cohort_size(present, config.schedule.sampling_rate))
        every = config.evaluation.decompose_every
        return RoundPlan(
            number,
            self.intervals[number - 1],
            config.training.rate_in(number),
            {client: existing.samples(client) for client in clients},
            replace(
                cohort_of(existing, cohort, present, population.trainable, sampler.poisson_rate, population.without),
                steps_take=steps_take,
            ),
            evaluates=number % config.evaluation.every == 0 or number == len(self.intervals),
            decomposes=every > 0 and number % every == 0,
            begins=begins,
            steps=steps,
            ends=ends,
            known=choices.known if sampler.adaptive else None,
            selection=choices.selection,
            asked=tuple(choices.asked),
        )

    def taken(self, number: int) -> list[tuple[int, int, int]]:
        """Client, training samples and local epochs of each client task whose update ends a round, stale ones too."""
        if self._clock is None:
            plan = self.plan(number)
            return [(client, samples, plan.local_epochs) for client, samples in plan.samples.items()]
        arrivals = self._clock.step(number).arrivals
        return [(each.client, self._federation.samples(each.client), self.intervals[each.version]) for each in arrivals]


class _Choices:
    """The choices of one round's cohort, and what they cost."""

    def __init__(
        self,
        config: RunConfig,
        samples: Callable[[Sequence[int]], NDArray[np.int64]],
        number: int,
        selection: Selection | None,
        measure: Measure | None,
    ) -> None:
        self._seed, self._number, self.selection, self._measure = config.seed, number, selection, measure
        self._sampler: Sampler = config.schedule.sampler
        self._samples = samples
        self.known: Known | None = None
        self.asked: list[int] = []

    def cohort(self, present: int) -> list[int]:
        """A cohort of the clients 0 … present − 1."""
        generator = seeds.numpy_generator(self._seed, "participants", self._number)
        count = schedule.cohort_size(present, self._sampler.sampling_rate)
        return self._chosen(Known(self._number, range(present), count, self._samples, self._ask(0.0)), generator)

    def in_virtual_time(self, clock: VirtualClock, choice: Choice, generator: np.random.Generator) -> Chosen:
        """A cohort of the clients that are idle, and the virtual seconds that it took to choose it."""
        assert self.selection is not None, "the sampler is adaptive"
        before = len(self.asked)
        durations = np.asarray(choice.seconds)
        known = Known(
            choice.number,
            choice.clients,
            choice.count,
            self._samples,
            self._ask(choice.time),
            lambda clients: durations[[*clients]],
        )
        clients, asked = self._chosen(known, generator), self.asked[before:]
        sent = [choice.bytes_down[client] for client in asked]
        seconds = clock.fleet.answer_seconds(asked, self._samples(asked), sent)
        self.selection = self.selection.with_cohort(clients, seconds)
        return clients, seconds

    def _chosen(self, known: Known, generator: np.random.Generator) -> list[int]:
        memory = None if self.selection is None else self.selection.memory
        told = replace(known, memory=memory)
        clients: list[int] = self._sampler.cohort(told, generator).tolist()
        # Without the function that asks, which holds this object and the run.
        self.known = replace(told, ask=None)
        return clients

    def _ask(self, time: float) -> Callable[[Sequence[int]], Losses] | None:
        measure = self._measure
        if measure is None:
            return None

        def ask(clients: Sequence[int]) -> Losses:
            self.asked += clients
            return measure(self._number, clients, time)

        return ask
