"""When a call counts as lost, by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from actors.call_deadline import LEAST, TIMES, Deadline
from raysim.engine.backend import Job


@dataclass(frozen=True)
class Train:
    def run(self, worker: Any, inputs: Any) -> tuple[None, list[Any]]:
        return None, []


class Judge(Train):
    pass


def test_the_users_deadline_is_that_of_every_call() -> None:
    deadline = Deadline(7.0)
    deadline.learn(Job(Train(), (), cost=1.0), 1000.0)
    assert deadline.of(Job(Train(), (), cost=1.0)) == deadline.of(Job(Judge(), (), cost=99.0)) == 7.0


def test_without_one_calls_are_judged_by_the_slowest_of_their_kind_and_their_cost() -> None:
    deadline = Deadline(0.0)
    assert deadline.of(Job(Train(), (), cost=10.0)) == float("inf")
    deadline.learn(Job(Train(), (), cost=10.0), 40.0)  # 4 s for a unit of cost
    deadline.learn(Job(Train(), (), cost=10.0), 20.0)
    assert deadline.of(Job(Train(), (), cost=30.0)) == TIMES * 4 * 30
    assert deadline.of(Job(Train(), (), cost=1.0)) == LEAST  # 80 s would be less
    assert deadline.of(Job(Judge(), (), cost=30.0)) == float("inf")
