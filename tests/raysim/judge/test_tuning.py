"""Two searches beside each other: trials that were asked may differ, the conditions of all trials may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from raysim.config.run_config import to_dict
from raysim.judge.runs import Run, Side
from raysim.judge.tuning import Tuning, read, refusals
from raysim.results.measures import find
from raysim.search.halving import Bracket
from raysim.search.space import Axis
from raysim.search.trials import Search, best_of, carry_out
from raysim.studies.study_file import Cell
from tests.raysim.search.asked import make, search_in
from tests.raysim.small_study import keep

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


def made(cells: Sequence[Cell]) -> dict[str, str]:
    """Cells with their settings; of those with the searched number of rounds two are best."""
    for cell in cells:
        rounds = cell.config().schedule.rounds
        keep(cell, validation_accuracy=[1 / (1 + abs(rounds - 2))] * rounds) if cell.folder is None else make(cell)
        cell.path.with_suffix(".yaml").write_text(yaml.safe_dump(to_dict(cell.config())), encoding="utf-8")
    return {}


def found_in(folder: Path, search: Search) -> Tuning:
    """The judge's reading of a search whose request says what a real one would."""
    rungs = {"rungs": [*search.bracket.rungs]} if search.bracket else {}
    request = {"measure": search.measure.name, "batch": search.batch, "seeds": [*search.seeds], **rungs}
    (folder / "search.yaml").write_text(yaml.safe_dump(request), encoding="utf-8")
    return read(folder, Side("A", ()), (), "method", [])


@pytest.mark.parametrize("bracket", [None, Bracket(2, (1, 3, 6))])
def test_the_trial_that_the_search_chose_is_the_chosen_one(tmp_path: Path, bracket: Bracket | None) -> None:
    search = search_in(tmp_path, trials=8, bracket=bracket)
    if bracket is None:  # the judge took the best of the trials with most rounds
        search = replace(search, axes=(Axis("schedule.rounds", choices=(1, 2, 3, 4, 5)),))
    trials = carry_out(search, made, lambda: False, lambda trials: None)
    best, found = best_of(trials, search.measure), found_in(tmp_path, search)
    assert best is not None and found.chosen is not None
    assert {path: found.chosen[path] for path in best.values} == best.values
    assert found.chosen["schedule.rounds"] == (2 if bracket is None else 6)


def test_a_search_by_halving_chose_none_before_a_trial_was_at_the_last_rung(tmp_path: Path) -> None:
    search = search_in(tmp_path, trials=4, bracket=Bracket(2, (1, 3, 6)))
    assert carry_out(search, made, lambda: any(tmp_path.rglob("*.csv")), lambda trials: None) == []
    assert found_in(tmp_path, search).chosen is None
