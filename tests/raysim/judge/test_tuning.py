"""Two searches beside each other: trials that were asked may differ, the conditions of all trials may not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from raysim.judge.runs import Run, Side
from raysim.judge.tuning import Tuning, refusals
from raysim.results.measures import find

RATE, MOMENTUM, CODEC = "training.learning_rate", "training.momentum", "compression.kind"
USED = {RATE: 0.1, MOMENTUM: 0.9, "schedule.rounds": 2, CODEC: "none", "method.name": "fedavg"}


def searched(*trials: dict[str, Any]) -> Tuning:
    """A search with these trials, which chose what the runs have."""
    return Tuning(Path("search"), find("validation_accuracy"), [{**USED, **trial} for trial in trials], 1, USED)


def kinds(first: Tuning, second: Tuning, subject: str = "method", of_b: Mapping[str, Any] = {}) -> list[str]:
    runs = [cast("Run", SimpleNamespace(settings=settings)) for settings in (USED, {**USED, **of_b})]
    sides = Side("A", (runs[0],)), Side("B", (runs[1],))
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
    plain, coded = searched({}), searched({CODEC: "int8"})
    assert kinds(plain, coded) == ["search settings"]
    assert kinds(plain, coded, "compression", {CODEC: "int8"}) == []
    assert kinds(plain, coded, "compression") == ["search settings"]  # B was searched with it, and ran without
    assert kinds(plain, searched({"method.name": "scaffold"})) == ["search settings"]
