"""Verdicts on a paper's differences, by intervals that were computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raysim.comparison import building, claims, latex, markdown
from raysim.comparison.differences import Difference
from raysim.comparison.outcomes import Pairing
from raysim.comparison.table import Page
from tests.raysim.comparison.made import LOSS, outcomes


@pytest.mark.parametrize(
    ("claimed", "low", "high", "told"),
    [
        (2.0, 1.0, 3.0, "confirmed"),
        (-2.0, -3.0, -1.0, "confirmed"),
        (4.0, 1.0, 3.0, "confirmed, but smaller here"),
        (-0.5, -3.0, -1.0, "confirmed, but larger here"),
        (4.0, -1.0, 3.0, "refuted at this size"),
        (-4.0, -3.0, 1.0, "refuted at this size"),
        (2.0, -3.0, -1.0, "refuted at this size: the other way round"),
        (-2.0, 1.0, 3.0, "refuted at this size: the other way round"),
        (0.0, 1.0, 3.0, "none, and one is told here"),
        (0.0, -3.0, -1.0, "none, and one is told here"),
        (0.0, -1.0, 3.0, "none, and none is told here"),
    ],
)
def test_the_interval_gives_the_verdict(claimed: float, low: float, high: float, told: str) -> None:
    assert claims.verdict(claimed, Difference((low + high) / 2, low, high, 5), 1.0) == told


def test_what_cannot_be_told_says_how_many_seeds_could() -> None:
    # A difference of one standard deviation needs 10 pairs for a power of 80 % (Cohen 1988: n = 7.85 / d² + 2).
    assert claims.verdict(1.0, Difference(0.5, -0.5, 1.5, 5), 1.0) == "not told: 10 seeds would"
    assert claims.verdict(0.001, Difference(0.0, -1.0, 1.0, 5), 1.0) == "not told: > 10,000 seeds would"
    assert claims.verdict(1.0, Difference(0.5, -0.5, 1.5, 12), 1.0) == "not told, though 10 seeds are enough"
    assert claims.verdict(1.0, Difference(0.5, None, None, 1), None) == "not told by one seed"
    assert claims.verdict(1.0, Difference(-0.5, -0.6, -0.4, 2), 0.01) == "not told by two seeds"
    assert claims.verdict(0.5, Difference(0.5, -0.5, 1.5, 5), 1.0, 0.1) == "not told: it takes more samples"
    folds = (Difference(0.5, -0.5, 1.5, 5), 1.0, 0.01)
    assert claims.verdict(1.0, *folds, 11) == "not told: 11 seeds would"
    assert claims.verdict(1.0, *folds, 10) == "not told: it takes more than the 10 folds"


def test_seeds_that_share_samples_are_told_apart_less() -> None:
    paper = {("FedAvg", "A", "accuracy"): "53.1", ("B_1 & co", "A", "accuracy"): "62.1"}
    table = claims.table(replace(outcomes(), paper=paper, resampled=1 / 3))
    # 10, 11 and 9 points here: 10 ± 4.302653 · √(1/3 + 1/3).
    assert "+10.00 [+6.49, +13.51], 3 seeds" in markdown.table(table)
    differences = building.differences(replace(outcomes(), resampled=1 / 3))
    assert "Nadeau and Bengio" in markdown.table(differences) and "0.333" in markdown.table(differences)
    assert "Nadeau" not in markdown.table(building.differences(outcomes()))


def test_a_table_has_each_difference_with_two_printed_numbers() -> None:
    paper = {
        ("FedAvg", "A", "accuracy"): "53.1",
        ("B_1 & co", "A", "accuracy"): "62.1 ± 0.4",
        ("B_1 & co", "B", "accuracy"): "60",
    }
    found = replace(outcomes(), paper=paper)
    # 10, 11 and 9 points here: 10 ± 4.302653 · 1 / √3; the paper has 9.
    line = "| B_1 & co − FedAvg | A, accuracy | +9.00 | +10.00 [+7.52, +12.48], 3 seeds | confirmed |"
    table = claims.table(found)
    assert markdown.table(table).splitlines()[2:3] == [line] and len(table.rows) == 1
    assert table.records[0]["paper"] == pytest.approx(0.09) and table.records[0]["verdict"] == "confirmed"
    assert "confirmed" in latex.page(Page("title", (table,)), "name")
    assert not claims.table(outcomes()).rows and markdown.table(claims.table(outcomes())) == ""


@pytest.mark.parametrize(
    ("first", "second"), [("5e-1", "1E+00"), ("0.5", "10.0e−1 ± 0.1"), ("5e-01 epochs", "1 e"), (".5", "1. ± .1")]
)
def test_printed_numbers_may_have_exponents_or_begin_with_a_point(first: str, second: str) -> None:
    """``5e-1`` was 5; a study file's 0.00001 is 1e-05 as text."""
    found = outcomes()
    paper = {("FedAvg", "A", "loss"): second, ("B_1 & co", "A", "loss"): first}
    values = {**found.values, ("B_1 & co", "A", "loss"): {0: 1.0, 1: 0.75, 2: 1.25}}
    pairings = (Pairing(("B_1 & co",), "FedAvg", LOSS),)
    [record] = claims.table(replace(found, values=values, paper=paper, pairings=pairings)).records
    assert record["paper"] == pytest.approx(-0.5) and record["verdict"] == "confirmed"
