"""Which job a slot of the Ray pool gets, and when a call counts as lost, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from raysim.actors.job_queue import LEAST, TIMES, Deadline, Work
from raysim.actors.slots import Slot
from raysim.exchange.pool_protocol import Job

FIRST, SECOND = Slot(0), Slot(1)


def work(*jobs: Job, homes: dict[int, int]) -> Work:
    made = Work()
    made.homes.update(homes)
    made.add(jobs)
    return made


def job(cost: float, task: Any = None, **more: Any) -> Job:
    return Job(task, (), cost=cost, **more)


@pytest.mark.parametrize(
    ("costs", "homes", "slot", "index"),
    [
        ([1, 3, 2], {}, FIRST, 1),  # the longest
        ([4, 4, 4], {0: 1, 10: 1, 20: 0}, FIRST, 2),  # its own
        ([4, 4, 4], {0: 1, 10: 1}, FIRST, 2),  # nobody's before another slot's
        ([4, 4, 4], {0: 1, 10: 1, 20: 1}, FIRST, 0),  # better another's than none
        ([5, 4, 3], {20: 0, 10: 0}, FIRST, 1),  # its own, if it is nearly as long as the longest
        ([5, 3, 3], {10: 0, 20: 0, 0: 1}, FIRST, 0),  # but the longest before one that is much shorter
        ([5, 3, 3], {10: 0, 20: 0, 0: 1}, SECOND, 0),
    ],
)
def test_a_slot_gets_the_longest_job_or_one_nearly_as_long_that_it_served_before(
    costs: list[float], homes: dict[int, int], slot: Slot, index: int
) -> None:
    jobs = [job(cost, about=10 * client) for client, cost in enumerate(costs)]
    assert work(*jobs, homes=homes).next_for(slot) == index


def test_jobs_about_no_client_go_by_length() -> None:
    assert work(job(1), job(2), homes={0: 0}).next_for(FIRST) == 1


def test_jobs_that_are_needed_earlier_go_first_whatever_their_length_and_whenever_they_came() -> None:
    jobs = work(job(9, before=2), job(1, before=1), homes={})
    assert [*jobs.add([job(8, before=1, about=0)])] == [2]
    assert [*jobs.waiting] == [2, 1, 0]
    jobs.drop([2])
    assert jobs.next_for(FIRST) == 1 and jobs.unfinished == 10


class Train:
    """A kind of task."""


class Judge:
    """Another one."""


def test_the_users_deadline_is_that_of_every_call() -> None:
    deadline = Deadline(7.0)
    deadline.learn(job(1.0, Train()), 1000.0)
    assert deadline.of(job(1.0, Train())) == deadline.of(job(99.0, Judge())) == 7.0


def test_without_one_calls_are_judged_by_the_slowest_of_their_kind_and_their_cost() -> None:
    deadline = Deadline(0.0)
    assert deadline.of(job(10.0, Train())) == float("inf")
    deadline.learn(job(10.0, Train()), 40.0)  # 4 s for a unit of cost
    deadline.learn(job(10.0, Train()), 20.0)
    assert deadline.of(job(30.0, Train())) == TIMES * 4 * 30
    assert deadline.of(job(1.0, Train())) == LEAST  # 80 s would be less
    assert deadline.of(job(30.0, Judge())) == float("inf")
