"""Who takes part in a round, for how many local epochs, and who is judged: plain lists, known without any training."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raysim import seeds
from raysim.errors import ConfigError
from raysim.units import counted

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation


def planned_intervals(config: RunConfig) -> list[int]:
    """Local epochs of every round of a run: f each, or as the method's own scheme or FedRAD's random one has them.

    With E local epochs in all there are ⌊E/f⌋ rounds. E need not be a multiple of f: the epochs after the last
    communication are not trained.

    Raises:
        ConfigError: unless E ≥ f ≥ 1.
    """
    options = config.schedule
    epochs, interval = options.epochs or options.rounds * options.local_epochs, options.local_epochs
    if not epochs >= interval >= 1:
        raise ConfigError(
            f"{epochs} local epochs in all with {interval} a round: no round could be completed. "
            f"Allowed are 1 ≤ epochs a round ≤ epochs in all; lower the first or raise the second."
        )
    own = config.method.traits.intervals
    scheme = {"method": own, "random": own or random_communication, "fixed": None}[options.intervals]
    if scheme is None:
        return [interval] * (epochs // interval)
    intervals: list[int] = scheme(epochs, interval, seeds.numpy_generator(config.seed, "intervals"))
    return intervals


def random_communication(epochs: int, interval: int, generator: np.random.Generator) -> list[int]:
    """The number of local epochs of every round; the length of the list is the number of rounds, ⌊E/f⌋.

    Source: Huang et al. 2021, Federated learning with random communication and dynamic aggregation (FedRAD), section
    3.1 and Algorithm 1. The first ⌊E/(2f)⌋ rounds take f epochs; in each later block of f epochs one epoch is
    drawn uniformly, at which clients and server communicate, and the intervals are the distances between these. They
    lie in [1, 2f-1], the first of them in [1, f]. The last, incomplete block of E mod f epochs holds no communication.
    Epochs after the last communication are not trained, so the sum is at most f⌊E/f⌋, and E changes nothing else than
    how many whole blocks it holds.

    Departure: the +1, +2 and ⌊E/2⌋ of the printed Algorithm 1 are index slips; the text of section 3.1 governs.

    Args:
        epochs: E, local epochs in all.
        interval: f, local epochs between two communications of the fixed scheme; E ≥ f ≥ 1.
        generator: source of the communication epochs.
    """
    rounds, half = epochs // interval, epochs // (2 * interval)
    block_starts = np.arange(half, rounds) * interval
    communications = generator.integers(block_starts + 1, block_starts + interval, endpoint=True)
    return [interval] * half + [int(gap) for gap in np.diff(communications, prepend=half * interval)]


def common_rounds(config: RunConfig, rounds: int) -> int:
    """How many first rounds of a run are the same if it has ``rounds`` rounds in all instead of what the config says.

    They differ from where random intervals do, from the shorter run's last round if that is evaluated only because it
    is the last, and from the start for a method that looks at the number of rounds, or for noise that is found for
    them.
    """
    if rounds == config.schedule.rounds:
        return rounds
    if config.method.traits.uses_rounds or config.privacy.epsilon is not None:
        return 0
    other = dataclasses.replace(config, schedule=dataclasses.replace(config.schedule, rounds=rounds, epochs=0))
    plans = [
        [
            (epochs, number % config.evaluation.every == 0 or number == len(intervals))
            for number, epochs in enumerate(intervals, start=1)
        ]
        for intervals in (planned_intervals(config), planned_intervals(other))
    ]
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*plans, strict=False)))


def trainable(config: RunConfig, clients: int) -> int:
    """How many of the clients that exist ever take part: the first ones, all but ``schedule.unseen_clients``.

    Raises:
        ConfigError: none would be left.
    """
    unseen = config.schedule.unseen_clients
    if unseen >= clients:
        raise ConfigError(
            f"schedule.unseen_clients: {unseen} of {clients} clients never take part, and none would train. Allowed: 0 "
            f"to {clients - 1}."
        )
    return clients - unseen


@dataclass(frozen=True)
class Population:
    """Clients of a run that ever take part, and those that never do."""

    clients: int
    """All clients that exist, 0 to this number − 1."""
    trainable: int
    """Clients from this number on never take part (``schedule.unseen_clients``)."""
    without: frozenset[int]
    """Clients below that number that take no part either (``schedule.without``)."""

    def __contains__(self, client: int) -> bool:
        return client < self.trainable and client not in self.without

    def __len__(self) -> int:
        return self.trainable - len(self.without)

    def members(self) -> Sequence[int]:
        """Those that take part, ascending."""
        every = range(self.trainable)
        return [client for client in every if client in self] if self.without else every

    def others(self) -> Sequence[int]:
        """Those that never take part, ascending."""
        unseen = range(self.trainable, self.clients)
        return [*sorted(self.without), *unseen] if self.without else unseen


def population(config: RunConfig, clients: int) -> Population:
    """Who of the clients that exist takes part.

    Raises:
        ConfigError: none would be left, or ``schedule.without`` names a client that takes no part anyway.
    """
    count, without = trainable(config, clients), frozenset(config.schedule.without)
    if unknown := sorted(client for client in without if client >= count):
        raise ConfigError(
            f"schedule.without: {unknown[0]} is no client that takes part. Allowed: numbers from 0 to {count - 1}."
        )
    if len(without) == count:
        raise ConfigError(f"schedule.without: all {counted(count, 'client')} are left out, and none would train.")
    return Population(clients, count, without)


def joined(epochs_before: int, clients: int, joins: Sequence[int], join_every: int) -> int:
    """How many clients are present in a round: clients 0 to this number − 1.

    The first joins[0] clients are there from the start; group g, the next joins[g] clients, joins at the first round
    with at least g · join_every local epochs before it (FedRAD's late joiners: 3, 2, 3, 2 every 200 epochs).

    Args:
        epochs_before: local epochs of all rounds before this one.
        joins: sizes of the groups, as accepted by ``check_joins``; empty = all clients from the start.
        join_every: local epochs between two groups.
    """
    if len(joins) < 2:
        return sum(joins) if joins else clients
    return sum(joins[: epochs_before // join_every + 1])


def participants(present: int, sampling_rate: float, generator: np.random.Generator) -> NDArray[np.int64]:
    """A uniform sample of a fraction in (0, 1] of the clients 0 … present − 1, at least one: :func:`sample`."""
    return sample(cohort_size(present, sampling_rate), present, generator)


def cohort_size(present: int, sampling_rate: float) -> int:
    """How many of the present clients a round samples (of Poisson cohorts the mean), at least 1; halves go to even."""
    return max(1, round(sampling_rate * present))


def updates_a_step(config: RunConfig, clients: int) -> list[int]:
    """How many updates server steps are planned to take, ascending: several where groups of clients join late.

    Clients that fail or are not there make fewer.
    """
    rule, options = config.timing.rule, config.schedule
    present = [*itertools.accumulate(options.joins)] or [clients]
    return sorted({rule.updates(cohort_size(count, options.sampling_rate)) for count in present})


def at_once(config: RunConfig, clients: int) -> int:
    """How many client tasks a run among this number of clients can do at a time."""
    at_once: int = config.timing.rule.at_once(cohort_size(clients, config.schedule.sampling_rate))
    return min(clients, at_once)


def sample(count: int, present: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """A uniform sample without replacement of ``count`` of the clients 0 … present − 1: ascending ids, int64 [count].

    All are taken without a draw. Time and memory grow with the number that is taken, not with the number present.
    """
    if count >= present:
        return np.arange(present, dtype=np.int64)
    # Without shuffling numpy uses Floyd's method, which is linear in `count`; for more than a twentieth of a large
    # population it permutes that instead, which is linear in `count` as well.
    return np.sort(generator.choice(present, count, replace=False, shuffle=False)).astype(np.int64, copy=False)


def weighted_sample(count: int, weights: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.int64]:
    """A sample without replacement of ``count`` of the places 0 … n − 1: ascending, int64 [count].

    One place after another is drawn, each with a probability in proportion to its weight among those that are left.
    That is the same as to take the places with the smallest E_i / w_i, E_i exponentially distributed (Efraimidis and
    Spirakis 2006, Weighted random sampling with a reservoir). Places of weight 0 come last, the first of them first.

    Args:
        weights: w ≥ 0 [n].
    """
    if count >= len(weights):
        return np.arange(len(weights), dtype=np.int64)
    draws = generator.exponential(size=len(weights))
    keys = np.divide(draws, weights, out=np.full(len(weights), np.inf), where=weights > 0)
    return np.sort(np.argsort(keys, kind="stable")[:count]).astype(np.int64, copy=False)


def check_joins(joins: Sequence[int], join_every: int, clients: int) -> None:
    """Check the groups of late joiners against the number of clients; no groups means that all start together.

    Raises:
        ConfigError: a group without clients, groups that do not add up to ``clients``, or join_every < 1.
    """
    if not joins:
        return
    groups = " + ".join(str(size) for size in joins)
    if min(joins) < 1:
        raise ConfigError(f"joins {groups}: every group of joining clients needs at least 1 client.")
    if sum(joins) != clients:
        raise ConfigError(
            f"joins {groups} = {sum(joins)}, but the run has {counted(clients, 'client')}. "
            f"Make the groups add up to the number of clients, or leave joins empty to start with all of them."
        )
    if join_every < 1 and len(joins) > 1:
        raise ConfigError(f"join_every is {join_every}: the local epochs between two groups must be at least 1.")


def judged_clients(config: RunConfig, federation: Federation) -> list[int]:
    """The first with a test sample of ``evaluation.client_limit`` equal parts of those that take part, and others."""
    limit, every = config.evaluation.client_limit, population(config, federation.clients)
    groups = (every.members(), every.others())
    parts = [
        clients[start:stop] for clients in groups for start, stop in itertools.pairwise(_bounds(len(clients), limit))
    ]
    return [next(filter(federation.test_samples, part), part[0]) for part in parts]


def _bounds(count: int, limit: int) -> list[int]:
    """The bounds of at most ``limit`` equal parts of the numbers 0 … count−1; none of no numbers."""
    found = min(count, limit)
    return [index * count // found for index in range(found + 1)] if found else []
