"""Paired differences between rows of a study, by numbers worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from raysim.comparison import building, markdown
from raysim.comparison.differences import Difference, paired
from raysim.errors import ConfigError
from raysim.studies import study_file, tables
from tests.raysim.small_study import TEXT, keep, study_of

COMPARE = "compare: [{rows: [Strong prox], against: FedAvg, measure: accuracy}]\n"


def test_the_interval_of_three_differences_is_that_of_student() -> None:
    """Differences 5, 8, 4: mean 17/3, deviation √(13/3), t(0.975, 2) = 4.302653, half of it 4.302653 · √(13/9)."""
    found = paired({0: 50.0, 1: 60.0, 2: 70.0}, {2: 66.0, 1: 52.0, 0: 45.0})
    assert found is not None and found.seeds == 3 and found.told
    assert found.mean == pytest.approx(17 / 3)
    assert (found.low, found.high) == pytest.approx((0.495522, 10.837812), abs=1e-5)


def test_seeds_that_share_samples_have_a_wider_interval() -> None:
    """The same with one test sample for four of training: half of it 4.302653 · √(13/3 · (1/3 + 1/4)) (Nadeau & Bengio
    2003)."""
    found = paired({0: 50.0, 1: 60.0, 2: 70.0}, {2: 66.0, 1: 52.0, 0: 45.0}, resampled=0.25)
    assert found is not None and found.mean == pytest.approx(17 / 3) and not found.told
    half = 4.302653 * math.sqrt(13 / 3 * 7 / 12)
    assert (found.low, found.high) == pytest.approx((17 / 3 - half, 17 / 3 + half), abs=1e-5)


def test_only_seeds_that_both_rows_have_are_paired() -> None:
    """Seeds 0 and 1 give 5 and 8: 6.5 ± 12.706205 · 1.5; seed 7 has no partner."""
    found = paired({0: 50.0, 1: 60.0, 7: 99.0}, {0: 45.0, 1: 52.0, 2: 66.0})
    assert found is not None and found.seeds == 2 and not found.told
    assert (found.low, found.high) == pytest.approx((6.5 - 19.059307, 6.5 + 19.059307), abs=1e-5)
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_a_difference_that_is_asked_for_twice_is_there_once(tmp_path: Path) -> None:
    """Else it would count twice among those for which p-values are corrected."""
    study = study_of(tmp_path, COMPARE.replace("}]", "}, {rows: [Strong prox], against: FedAvg, measure: accuracy}]"))
    assert len(study.compare) == 2
    assert [place[:2] for place in tables.outcomes(study, {}).compared()] == [
        ("Strong prox", "MLP"),
        ("Strong prox", "Logistic"),
    ]


def test_one_seed_cannot_tell() -> None:
    found = paired({3: 0.5}, {3: 0.25})
    assert found == Difference(0.25, None, None, 1) and not found.told
    assert found.text(100, ".2f") == "+25.00, cannot be told, 1 seed"


def test_equal_differences_have_an_interval_without_width_and_zero_is_not_told() -> None:
    assert paired({0: 2.0, 1: 3.0}, {0: 1.0, 1: 2.0}) == Difference(1.0, 1.0, 1.0, 2)
    same = paired({0: 2.0, 1: 3.0}, {0: 2.0, 1: 3.0})
    assert same is not None and not same.told and same.text(1, ".1f") == "0.0 [0.0, 0.0], 2 seeds"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.004, 0.2, "+0.10 [+0.00, +0.20], 3 seeds"),
        (-0.004, 0.2, "+0.10 [−0.00, +0.20], 3 seeds"),
        (0.0, 0.2, "+0.10 [0.00, +0.20], 3 seeds"),
    ],
)
def test_an_end_that_rounds_to_zero_says_on_which_side_it_lies(low: float, high: float, text: str) -> None:
    """All three printed 0.00, so that an interval that holds zero looked as one that does not."""
    assert Difference(0.1, low, high, 3).text(1, ".2f") == text
    assert Difference(-0.001, -0.1, 0.1, 3).text(1, ".2f") == "0.00 [−0.10, +0.10], 3 seeds"


def test_a_study_writes_the_differences_that_its_file_asks_for_under_its_table(tmp_path: Path) -> None:
    study = study_of(tmp_path, COMPARE)
    kept = {("FedAvg", 0): 0.45, ("FedAvg", 1): 0.52, ("Strong prox", 0): 0.5, ("Strong prox", 1): 0.6}
    for cell in study.cells():
        keep(cell, accuracy=[kept.get((cell.row, cell.seed), 0.3)])
    tables.write_table(study)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    head = "| difference [95 % interval] | MLP, last (points) | Logistic, last (points) |"
    line = "| Strong prox − FedAvg | +6.50 [−12.56, +25.56], 2 seeds | 0.00, cannot be told, 1 seed |"
    assert f"{head}\n|---|---|---|\n{line}\n\nMade by `python" in page
    assert page.index("| Strong prox | 55.00") < page.index(head)


def test_a_difference_has_the_unit_of_its_measure_and_may_be_of_one_column(tmp_path: Path) -> None:
    more = "compare: [{rows: [Strong prox], against: FedAvg, measure: loss, columns: [MLP]}]\n"
    study = study_of(tmp_path, more)
    for cell in study.cells():
        keep(cell, accuracy=[0.3], loss=[1.0 + cell.seed / 10 if cell.row == "FedAvg" else 0.75])
    found = markdown.table(building.differences(tables.outcomes(study, {})))
    # −0.25 and −0.35: mean −0.3, deviation 0.0707107, half 12.706205 · 0.05.
    assert found.splitlines()[0] == "| difference [95 % interval] | MLP, loss |"
    assert found.splitlines()[2] == "| Strong prox − FedAvg | −0.3000 [−0.9353, +0.3353], 2 seeds |"


def test_a_page_without_finished_pairs_has_no_table_of_differences(tmp_path: Path) -> None:
    study = study_of(tmp_path, COMPARE)
    keep(next(study.cells()), accuracy=[0.5])
    tables.write_table(study)
    assert "difference" not in (tmp_path / "page.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("compare: 3\n", "compare: 3 is not allowed. Allowed: a list"),
        (
            "compare: [{rows: [FedAvg], measure: accuracy}]\n",
            "compare: entry 1: against is missing. Keys: rows, against, measure, columns",
        ),
        (
            COMPARE.replace("against: FedAvg", "against: FedAdam"),
            "compare: entry 1: no row 'FedAdam'. Did you mean FedAvg? There are",
        ),
        (COMPARE.replace("[Strong prox]", "[FedAvg]"), "compare: entry 1: 'FedAvg' is compared with itself"),
        (COMPARE.replace("[Strong prox]", "Strong prox"), "compare: entry 1: rows: 'Strong prox' is not allowed"),
        (
            COMPARE.replace("accuracy", "acuracy"),
            "compare: entry 1: measure: no measure 'acuracy'. Did you mean accuracy?",
        ),
        (COMPARE.replace("}", ", columns: [CNN]}"), "compare: entry 1: no column 'CNN'. There are MLP, Logistic"),
        (COMPARE.replace("}", ", colums: [MLP]}"), "compare: entry 1: unknown key colums. Did you mean columns?"),
    ],
)
def test_a_mistake_in_compare_is_one_sentence(tmp_path: Path, more: str, message: str) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(TEXT + more, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        study_file.read(path)
    assert message in str(error.value)
