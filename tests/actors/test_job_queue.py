"""Which job a slot of the Ray pool gets."""

from __future__ import annotations

import pytest

from actors.job_queue import Work
from actors.slots import Slot
from raysim.engine.backend import Job

FIRST, SECOND = Slot(0), Slot(1)


def work(costs: list[float], homes: dict[int, int]) -> Work:
    """Jobs about clients 0, 10, 20, … of these costs."""
    return Work([Job(None, (), cost=cost, about=10 * index) for index, cost in enumerate(costs)], homes)  # type: ignore[arg-type]


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
    assert work(costs, homes).next_for(slot) == index


def test_jobs_about_no_client_go_by_length() -> None:
    jobs = Work([Job(None, (), cost=cost) for cost in (1, 2)], {0: 0})  # type: ignore[arg-type]
    assert jobs.next_for(FIRST) == 1


def test_jobs_that_are_needed_earlier_go_first_whatever_their_length_and_whenever_they_came() -> None:
    task: object = None
    jobs = Work([Job(task, (), cost=9, before=2), Job(task, (), cost=1, before=1)], {})  # type: ignore[arg-type]
    assert [*jobs.add([Job(task, (), cost=8, before=1, about=0)])] == [2]  # type: ignore[arg-type]
    assert [*jobs.waiting] == [2, 1, 0]
    jobs.drop([2])
    assert jobs.next_for(FIRST) == 1 and jobs.unfinished == 10
