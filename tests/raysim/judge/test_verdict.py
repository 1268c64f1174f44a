"""The sentence of a verdict, with differences by hand."""

from __future__ import annotations

import math

import pytest

from raysim.judge.verdict import Groups, Verdict
from raysim.results.measures import find


def verdict(first: list[float], second: list[float], measure: str = "accuracy") -> Verdict:
    groups = Groups("A (x)", "B (y)", find(measure))
    return Verdict(groups, dict(enumerate(zip(first, second, strict=True))), {}, {})


def test_the_better_side_comes_first_with_its_interval() -> None:
    # Differences of 1, 2 and 3 points: 2 ± 4.3027 / √3.
    found = verdict([0.81, 0.82, 0.83], [0.80, 0.80, 0.80])
    assert found.better == "" and found.plain()["gain of A"]["mean"] == pytest.approx(0.02)
    text = found.text().splitlines()[0]
    assert text.startswith(
        "cannot tell A (x) from B (y): 2.00 [−0.48, 4.48] points of accuracy in favor of A, 3 paired"
    )
    # The same with a tenth of the spread.
    found = verdict([0.819, 0.820, 0.821], [0.80, 0.80, 0.80])
    sentence = "A (x) is better than B (y) by 2.00 [1.75, 2.25] points of accuracy, 3 paired seeds."
    assert found.text().splitlines()[0] == sentence and found.plain()["verdict"] == "A is better"
    other = verdict([0.80, 0.80, 0.80], [0.819, 0.820, 0.821])
    assert other.text().splitlines()[0] == sentence.replace("A (x) is better than B (y)", "B (y) is better than A (x)")


def test_a_smaller_loss_is_better() -> None:
    found = verdict([0.50, 0.51, 0.52], [0.60, 0.612, 0.618], "loss")
    assert found.better == "A" and "of" not in found.text().split("by ")[1].split(",")[0]
    assert found.text().startswith("A (x) is better than B (y) by 0.1000 [0.0") and "] in loss, 3" in found.text()


def test_one_seed_and_no_difference_tell_nothing() -> None:
    one = verdict([0.9], [0.1])
    assert one.better == "" and "80.00 points of accuracy in favor of A, 1 paired seed, too few" in one.text()
    none = verdict([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    assert none.plain()["verdict"] == "cannot tell" and none.plain()["tests"]["seeds needed"] is None
    assert "no number of seeds shows a difference of 0" in none.text()


def test_two_seeds_tell_nothing() -> None:
    """Two differences that are alike by chance have an interval as narrow as any."""
    two = verdict([0.9, 0.9], [0.8, 0.8])
    assert two.better == "" and two.plain()["verdict"] == "cannot tell"
    assert "2 paired seeds, too few to tell: 3 are the least, and five or more the rule." in two.text()


def test_the_seeds_that_would_be_needed_are_said() -> None:
    found = verdict([0.81, 0.82, 0.83], [0.80, 0.80, 0.80])
    assert found.plain()["tests"]["seeds needed"] == 5
    assert "; about 5 new seeds would be needed for a difference of this size and spread." in found.text()


def test_an_infinite_loss_is_no_difference() -> None:
    found = verdict([0.5, math.inf, 0.7], [0.6, 0.6, 0.6], "loss")
    assert found.better == "" and found.text().splitlines()[:2] == [
        "cannot tell A (x) from B (y): the difference in loss cannot be computed: not all values are finite, 3 paired "
        "seeds.",
        "  A (x): loss inf",
    ]
    assert found.plain()["tests"] == {"t p": None, "Wilcoxon p": None, "seeds needed": None}
