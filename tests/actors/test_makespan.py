"""How long a round takes by its client tasks' lengths alone: the pool's own orders, and a clock in place of actors."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.actors.job_queue import Work
from raysim.actors.pool import RayPool
from raysim.actors.slots import Slot
from raysim.exchange.pool_protocol import OFF, Job, cut


class Actor:
    run = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *_: object()))


def sender(slots: list[Slot], costs: Sequence[float]) -> RayPool:
    """A pool without processes, and jobs of these costs that it has to send."""
    pool = RayPool.__new__(RayPool)
    pool.recorder = OFF
    pool._slots = slots  # type: ignore[assignment]
    task: Any = None  # never called
    pool._work = Work()
    pool._work.add([Job(task, (), cost=cost) for cost in costs])
    return pool


def makespan(costs: Sequence[float], actors: int) -> float:
    """When the last of the jobs is over, if a job takes as long as its cost."""
    slots = [Slot(place, Actor()) for place in range(actors)]
    pool = sender(slots, costs)
    work = pool._work
    ends: dict[int, float] = {}  # job → when it is over, of those that are at work
    now = 0.0
    pool._send()
    while work.sent:
        for slot in slots:
            if slot.jobs:
                ends.setdefault(slot.jobs[0], now + costs[slot.jobs[0]])
        first = min(ends, key=lambda job: ends[job])
        now = ends.pop(first)
        work.finished(next(reference for reference, call in work.sent.items() if call.index == first))
        pool._send()
    return now


@settings(deadline=None, max_examples=200)
@given(clients=st.integers(1, 400), actors=st.integers(1, 9), sigma=st.floats(0.0, 2.5), seed=st.integers(0, 2**32 - 1))
def test_a_round_is_within_the_bound_of_longest_first(clients: int, actors: int, sigma: float, seed: int) -> None:
    """Graham 1969: no later than a slot's share and (1 − 1/m) of the longest job after it.

    No block of several clients is longer than half of a share.
    """
    lengths = np.random.default_rng(seed).lognormal(0.0, sigma, clients)
    blocks = cut(range(clients), actors, costs=lengths.tolist())
    costs = [float(lengths[block].sum()) for block in blocks]
    share = lengths.sum() / actors
    longest = max(costs)
    assert longest <= max(lengths.max(), share / 2) * (1 + 1e-9)
    assert makespan(costs, actors) <= (share + (1 - 1 / actors) * longest) * (1 + 1e-9)


def test_fifty_clients_of_log_normal_sizes_keep_two_actors_busy() -> None:
    for seed in range(100):
        lengths = np.random.default_rng(seed).lognormal(0.0, 1.0, 50)
        costs = [float(lengths[block].sum()) for block in cut(range(50), 2, costs=lengths.tolist())]
        assert lengths.sum() / (2 * makespan(costs, 2)) > 0.97


def test_nothing_is_sent_ahead_behind_a_job_that_fills_its_actors_share() -> None:
    """FedSSP's seven sets on two actors: NCI1 alone is half of the work, so all else goes to the other."""

    def sent(costs: Sequence[float], slots: list[Slot]) -> list[list[int]]:
        sender(slots, costs)._send()
        return [slot.jobs for slot in slots]

    sets = (3288.0, 1600.0, 604.0, 373.0, 323.0, 276.0, 150.0)
    assert sent(sets, [Slot(0, Actor()), Slot(1, Actor())]) == [[0], [1, 2]]
    # Jobs of one size are sent ahead to all.
    assert sent([5.0] * 20, [Slot(0, Actor()), Slot(1, Actor())]) == [[0, 2], [1, 3]]
    # An actor that is not up gets none, and what it would have got is not piled up on another.
    assert sent(sets, [Slot(0, Actor(), coming=object()), Slot(1, Actor())]) == [[], [0]]
