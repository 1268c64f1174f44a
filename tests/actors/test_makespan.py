"""How long a round takes by the lengths of its visits alone: the pool's own orders, and a clock in place of actors."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.job_queue import Work
from actors.pool import RayPool
from actors.slots import Slot
from raysim.engine.backend import Job, cut
from raysim.engine.profiler import OFF


class Actor:
    run = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *_: object()))


def makespan(costs: Sequence[float], actors: int) -> float:
    """When the last of the jobs is over, if a job takes as long as its cost."""
    pool = RayPool.__new__(RayPool)
    pool.recorder = OFF
    slots = [Slot(place, Actor()) for place in range(actors)]
    pool._slots = slots  # type: ignore[assignment]
    work = Work([Job(None, (), cost=cost) for cost in costs], {})  # type: ignore[arg-type]
    ends: dict[int, float] = {}  # job → when it is over, of those that are at work
    now = 0.0
    pool._send(work)
    while work.sent:
        for slot in slots:
            if slot.jobs:
                ends.setdefault(slot.jobs[0], now + costs[slot.jobs[0]])
        first = min(ends, key=lambda job: ends[job])
        now = ends.pop(first)
        work.finished(next(reference for reference, call in work.sent.items() if call.index == first))
        pool._send(work)
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
