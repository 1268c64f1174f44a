"""What an accuracy cost a run, and the pictures of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from raysim.report import plots
from raysim.report.plots import cost_picture, drawn_costs
from raysim.results.costs import cost_of, costs_to_accuracies, running_costs
from tests.raysim.report.pages import colored


def rounds(**more: list[float]) -> pd.DataFrame:
    """Four rounds, of which the second was not evaluated and the third is better than the last."""
    columns = {"accuracy": [0.3, np.nan, 0.81, 0.6], "bytes_down": [10, 20, 30, 40], "bytes_up": [1, 2, 3, 4]}
    return pd.DataFrame({"round": [1, 2, 3, 4], **columns, **more})


TIMED: dict[str, list[float]] = {"virtual_seconds": [5.0, 7.0, 20.0, 21.0], "joules": [1.0, 1.0, 2.0, 0.5]}


def test_costs_add_up_but_for_the_time_which_is_since_the_start() -> None:
    costs = running_costs(rounds(**TIMED))
    assert costs["bytes"].tolist() == [11, 33, 66, 110]
    assert costs["virtual_seconds"].tolist() == [5.0, 7.0, 20.0, 21.0]
    assert costs["joules"].tolist() == [1.0, 2.0, 4.0, 4.5]


@pytest.mark.parametrize(("accuracy", "number"), [(0.2, 1), (0.3, 1), (0.31, 3), (0.81, 3)])
def test_the_cost_is_that_of_the_first_round_that_reached_it(accuracy: float, number: int) -> None:
    cost = cost_of(rounds(**TIMED), accuracy)
    assert cost is not None
    assert cost == running_costs(rounds(**TIMED)).iloc[number - 1].to_dict()
    assert all(isinstance(value, (int, float)) for value in cost.values())


def test_what_a_table_lacks_is_left_out() -> None:
    assert list(running_costs(rounds().drop(columns="bytes_up"))) == ["round"]
    assert drawn_costs([rounds(**TIMED)]) == ["bytes", "virtual_seconds"]
    assert drawn_costs([rounds(**TIMED), rounds()]) == ["bytes"]
    assert drawn_costs([rounds(**TIMED), rounds().drop(columns="accuracy")]) == []


def test_what_was_never_reached_has_no_cost() -> None:
    assert cost_of(rounds(), 0.82) is None
    assert cost_of(rounds().drop(columns="accuracy"), 0.1) is None


def test_the_summary_has_the_levels_that_were_reached() -> None:
    assert costs_to_accuracies(rounds()) == [
        {"accuracy": 0.5, "round": 3, "bytes": 66},
        {"accuracy": 0.6, "round": 3, "bytes": 66},
        {"accuracy": 0.7, "round": 3, "bytes": 66},
        {"accuracy": 0.8, "round": 3, "bytes": 66},
    ]


def test_costs_are_drawn_in_a_unit_that_is_easy_to_read() -> None:
    factor, label = plots.unit_of_costs("bytes", [rounds(), rounds().assign(bytes_down=10**9)])
    assert (round(factor), label) == (10**9, "GB sent and received")
    timed = rounds(virtual_seconds=[5.0, 9.0, 90.0, 36_000.0])
    assert plots.unit_of_costs("virtual_seconds", [timed]) == (3600, "virtual hours")


def test_seeds_are_one_line_at_their_mean_cost() -> None:
    cheap, dear = rounds(), rounds().assign(bytes_down=[1000, 1000, 1000, 1000])
    png = cost_picture([("two seeds", [cheap, dear]), ("one", [cheap])], "costs")
    assert colored(png, "#0072b2") > 500 and colored(png, "#d55e00") > 100


@pytest.mark.parametrize("others", [[], [("untimed", [rounds()])]])
def test_an_accuracy_is_drawn_at_the_cost_of_its_own_round(monkeypatch: pytest.MonkeyPatch, others: list[Any]) -> None:
    """Against virtual time only where all runs have it; the second round was not evaluated."""
    drawn: list[list[float]] = []
    monkeypatch.setattr(plots, "_plot", lambda axes, lines, *more, **options: drawn.append(lines[0].x.tolist()))
    cost_picture([("run", [rounds(**TIMED)]), *others], "costs")
    expected = [[11.0, 66.0, 110.0], [5.0, 20.0, 21.0]]  # in bytes and seconds: they are few
    assert drawn == expected[: 1 if others else 2]
