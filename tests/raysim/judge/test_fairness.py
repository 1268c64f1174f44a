"""Reasons against a comparison, one at a time, of runs that are only described."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest

from raysim.errors import ConfigError
from raysim.judge import __main__ as judge
from raysim.judge import budget, fairness, measuring, options
from raysim.judge.refusals import Refusal
from raysim.judge.runs import Run, Side


@dataclass
class Described:
    """A run by what the rules read of it."""

    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    samples: dict[int, int] = field(default_factory=lambda: {0: 10})
    length: int = 2
    tasks: int = 4
    epochs: int = 2
    head: str = "aa"
    partition: str = ""
    folder: Path = Path("run")

    @property
    def rounds(self) -> pd.DataFrame:
        numbers = range(1, self.length + 1)
        return pd.DataFrame(
            {"round": numbers, "loss": [0.5] * self.length, "epochs_total": [self.epochs] * self.length}
        )

    @property
    def clients(self) -> pd.DataFrame:
        return pd.DataFrame({"client": range(self.tasks), "steps": [3] * self.tasks})


def side(letter: str, *runs: Described) -> Side:
    return Side(letter, cast("tuple[Run, ...]", runs))


def pair(first: Described, second: Described) -> list[tuple[Run, Run]]:
    return [cast("tuple[Run, Run]", (first, second))]


def kinds(found: object) -> list[str]:
    return [refusal.kind for refusal in cast("list[Refusal]", found)]


def test_the_rounds_are_the_methods_own_where_epochs_are_given() -> None:
    for given, refused in (({}, ["rounds", "client tasks", "judged rounds"]), ({"schedule.epochs": 2}, [])):
        pairs = pair(Described(settings=given), Described(settings=given, length=3, tasks=6))
        assert kinds(budget.refusals(pairs)) == refused
    given = {"schedule.epochs": 2}
    assert kinds(budget.refusals(pair(Described(settings=given), Described(settings=given, epochs=3)))) == ["epochs"]
    spent = budget.spent(pair(Described(), Described(tasks=6)))
    assert spent["client tasks"] == (4, 6) and spent["steps"] == (12, 18) and "bytes_up" not in spent


def test_runs_that_may_both_end_early_may_have_other_lengths() -> None:
    early = {"evaluation.patience": 2}
    shorter = Described(settings=early, length=1)
    assert kinds(budget.refusals(pair(shorter, Described(settings=early)))) == []
    assert kinds(budget.refusals(pair(shorter, Described()))) == ["rounds", "judged rounds"]
    assert kinds(options.early_ends([side("A", shorter), side("B", shorter)])) == ["test data for choosing"]
    fair = Described(settings={**early, "evaluation.measure": "-validation_loss"})
    assert kinds(options.early_ends([side("A", fair), side("B", fair)])) == []


def test_changed_code_and_other_samples_are_refused_on_either_side() -> None:
    clean, dirty = Described(environment={"dirty": False}), Described(environment={"dirty": True})
    (found,) = fairness.code(pair(clean, dirty))
    assert (found.kind, found.where, found.b) == ("code", "environment.json, dirty", "has True (run)")
    own, changed = (Described(environment={"sources": {"mine:Net": digests}}) for digests in (["a"], ["a", "b"]))
    other = Described(environment={"sources": {"mine:Net": ["b"]}})
    (found,) = fairness.code(pair(own, other))
    assert (found.where, found.b) == ("environment.json, sources of mine:Net", "has b (run)")
    (found,) = fairness.code(pair(Described(), changed))  # it was resumed with another source
    assert (found.where, found.a, found.b) == ("environment.json, sources", "–", "has 2 of mine:Net (run)")
    assert kinds(fairness.code(pair(own, Described()))) == []  # the other side has another method
    (found,) = fairness.code([*pair(own, Described()), *pair(other, Described())])
    assert (found.a, found.b) == ("has a (run); has b (run)", "–")
    (found,) = fairness.split(pair(Described(samples={0: 10, 1: 5}), Described(samples={0: 10, 1: 6})))
    assert (found.where, found.a, found.b) == ("clients.csv, client 1, seed 0", "has 5 samples", "has 6")
    assert kinds(fairness.split(pair(Described(samples={0: 10}), Described(samples={1: 6})))) == []  # other cohorts


def test_a_copy_counts_on_either_side_and_stands_in_its_column() -> None:
    whole, one = side("A", Described(), Described()), side("B", Described(head="bb"))
    (found,) = [refusal for refusal in fairness.refusals(whole, one, "method", ()) if refusal.kind == "copied run"]
    assert found.a == "has seed 0 in run, run" and found.b == "–"
    (found,) = fairness.repeated(side("B", Described(), Described(head="bb")))
    assert (found.kind, found.a) == ("repeated seed", "–") and found.b.startswith("has seed 0")


def test_options_of_the_data_may_follow_the_seed_and_no_others() -> None:
    runs = [Described(seed, {"workload.fold": seed, "training.momentum": 0.9}) for seed in (0, 1)]
    assert kinds(options.of_one_side(side("A", *runs))) == []
    runs[1].settings["training.momentum"] = 0.5
    (found,) = options.of_one_side(side("A", *runs))
    assert found.kind == "mixed settings" and found.where == "training.momentum" and found.b == "–"


def test_a_note_says_where_seeds_are_folds() -> None:
    request = Namespace(recompute=1)
    one, two = Described(0, {"workload.fold": 3}), Described(1, {"workload.fold": 4})
    assert judge._notes(request, side("A", one), side("B", one)) == ()
    (note,) = judge._notes(request, side("A", one, two), side("B", one, two))
    assert note.startswith("each seed is another fold")


def test_the_section_that_is_compared_may_differ_and_no_other() -> None:
    pairs = pair(Described(settings={"compression.bits": 4}), Described(settings={"compression.bits": 8}))
    assert kinds(options.between(pairs, "compression", ())) == []
    (found,) = options.between(pairs, "method", ())
    assert found.kind == "conditions" and found.advice.endswith("If the comparison is about it: --subject compression.")
    method = pair(Described(settings={"method.mu": 0.1}), Described(settings={"method.mu": 0.2}))
    assert kinds(options.between(method, "compression", ())) == ["computation"]
    assert kinds(options.between(method, "method", ())) == []


def test_two_groups_of_one_setting_have_nothing_to_compare() -> None:
    found = fairness.refusals(side("A", Described()), side("B", Described(head="bb")), "method", ())
    assert kinds(found) == ["nothing differs"]


def test_runs_without_an_accuracy_are_judged_by_their_loss() -> None:
    assert measuring.measure_of("", pair(Described(), Described())).name == "loss"


@pytest.mark.parametrize("name", ["participants", "epochs_total"])
def test_a_measure_of_which_no_value_is_better_judges_nothing(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--measure {name}: no value of it is better than another"):
        measuring.measure_of(name, pair(Described(), Described()))


def test_a_gain_over_local_training_judges_no_two_groups() -> None:
    with pytest.raises(ConfigError, match="--measure local_gain: it is over a third group of runs, of method local"):
        measuring.measure_of("local_gain", pair(Described(), Described()))
