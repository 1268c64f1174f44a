"""Tables of outcomes that were made by hand, as Markdown."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

from raysim.comparison import building, markdown
from raysim.comparison.outcomes import Pairing, lines_of_heads
from raysim.comparison.table import Entry, Page
from tests.raysim.comparison.made import LOSS, outcomes


def test_means_have_marks_counts_and_the_numbers_of_a_paper() -> None:
    lines = markdown.table(building.means(outcomes())).splitlines()
    assert lines[0] == "|  | A, accuracy (%) | A, accuracy, paper (%) | A, loss | B, accuracy (%) | B, loss |"
    assert lines[2] == "| FedAvg | 51.00 ± 1.00 (3) | 53.1 | 1.5000 ± 0.2500 (3) | 26.00 ± 1.00 (3) |  |"
    assert lines[3] == "| B_1 & co | **61.00 ± 1.00** (3) |  |  | 30.00 (1, 2 failed) | (0, 2 failed) |"


def test_differences_and_tests_are_those_of_equal_seeds() -> None:
    means, differences, tests = building.tables(outcomes())
    assert means.records[0]["mean"] == 0.51 and means.records[0]["paper, as printed"] == "53.1"
    # 10, 11 and 9 points: 10 ± 4.302653 · 1 / √3.
    assert "| B_1 & co − FedAvg | +10.00 [+7.52, +12.48], 3 seeds |" in markdown.table(differences)
    assert "| B_1 & co − FedAvg | A, accuracy | 0.003 | 0.003 | 0.250 |" in markdown.table(tests)
    assert [table.name for table in building.tables(replace(outcomes(), statistics=False))] == ["", "differences"]


def test_a_sign_of_tables_in_a_name_breaks_no_table() -> None:
    named = replace(outcomes(), rows=("FedAvg", "a|b"), columns=("A",), pairings=())
    assert "\n| a\\|b |  |  |  |" in markdown.table(building.means(named))


def test_heads_are_listed_in_short_form_or_as_one_digest() -> None:
    few = lines_of_heads(outcomes())
    assert few[::2] == ["Without a proof: 8 of its 10 runs.", "A / FedAvg: 0: abababab, 1: cdcdcdcd."]
    assert lines_of_heads(replace(outcomes(), heads={})) == ["Without a proof: 10 of its 10 runs."]
    of_61 = replace(outcomes(), values={("row", "", "accuracy"): dict.fromkeys(range(61), 0.5)})
    many = lines_of_heads(replace(of_61, heads={("row", "", seed): "ab" * 32 for seed in range(61)}))
    digest = hashlib.sha256(("ab" * 32 + "\n").encode() * 61).hexdigest()  # as sha256sum says of a file of them
    assert many == [f"Proofs of its 61 runs: SHA-256 of all their heads {digest[:16]}."]
    assert many != lines_of_heads(replace(of_61, heads={("row", "", seed): "ac" * 32 for seed in range(61)}))
    page = markdown.page(Page("title", (), origin=tuple(few)))
    assert page.splitlines() == few


def test_differences_without_some_seeds_say_so() -> None:
    """One of a row's seeds failed, and one never reached the accuracy: those that stay were chosen by it."""
    made = replace(outcomes(), columns=("A",), failed={})
    assert not building.differences(made).notes
    place = ("B_1 & co", "A", "accuracy")
    values = {**made.values, place: {0: 0.61, 2: 0.6}, ("B_1 & co", "A", "loss"): {0: 1.0, 1: 1.0, 2: 1.0}}
    (note,) = building.differences(replace(made, values=values, failed={("B_1 & co", "A"): 1})).notes
    assert note.endswith("so that those that stay were chosen by their result: B_1 & co, A, accuracy (2).")


def test_an_infinite_value_is_shown_and_what_cannot_be_computed_of_it_is_said() -> None:
    place = ("B_1 & co", "A", "loss")
    paper = {("FedAvg", "A", "loss"): "1.5", place: "1.25"}
    made = replace(outcomes(), pairings=(Pairing(("B_1 & co",), "FedAvg", LOSS),), paper=paper)
    values = {**made.values, place: {0: math.inf, 1: 1.0, 2: math.inf}}
    means, differences, claims, *tests = building.tables(replace(made, values=values))
    assert dict(means.rows)["B_1 & co"][1] == Entry("inf", "", "(3)")
    [record] = [one for one in means.records if (one["row"], one["column"], one["measure"]) == place]
    assert (record["mean"], record["std"]) == (math.inf, None)
    said = "cannot be computed: not all values are finite, 3 seeds"
    assert differences.rows == (("B_1 & co − FedAvg", (Entry(said),)),)
    assert claims.rows[0][1][-1] == Entry("not told: not all values are finite") and not tests
