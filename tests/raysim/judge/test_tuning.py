"""Two searches beside each other: trials that were asked may differ, the conditions of all trials may not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from raysim.judge.runs import Run, Side
from raysim.judge.tuning import Tuning, refusals
from raysim.results.measures import find

RATE, MOMENTUM = "training.learning_rate", "training.momentum"
USED = {RATE: 0.1, MOMENTUM: 0.9, "schedule.rounds": 2, "compression.kind": "none"}


def searched(*trials: dict[str, Any]) -> Tuning:
    """A search with these trials, which chose what the runs have."""
    return Tuning(Path("search"), find("validation_accuracy"), [{**USED, **trial} for trial in trials], 1, USED)


def kinds(first: Tuning, second: Tuning, subject: str = "method") -> list[str]:
    run = cast("Run", SimpleNamespace(settings=USED))
    sides = Side("A", (run,)), Side("B", (run,))
    return [refusal.kind for refusal in refusals(*sides, subject, [RATE], [first, second])]


def test_an_option_that_was_searched_may_begin_with_another_value() -> None:
    both = searched({MOMENTUM: 0.5}, {MOMENTUM: 0.9})
    assert kinds(searched({MOMENTUM: 0.9}, {MOMENTUM: 0.5}), both) == []
    assert kinds(searched({MOMENTUM: 0.9}, {RATE: 0.2}), searched({MOMENTUM: 0.5}, {MOMENTUM: 0.5})) == [
        "search settings"
    ]


def test_the_budget_is_trials_seeds_and_rounds() -> None:
    longer = searched({}, {"schedule.rounds": 3})
    assert longer.budget == "2 trials × 1 seed, 5 rounds"
    assert kinds(searched({}, {}), longer) == ["trials"] == kinds(searched({}), searched({}, {}))


def test_searches_may_differ_in_what_is_compared() -> None:
    plain, coded = searched({}), searched({"compression.kind": "int8"})
    assert kinds(plain, coded) == ["search settings"] and kinds(plain, coded, "compression") == []
