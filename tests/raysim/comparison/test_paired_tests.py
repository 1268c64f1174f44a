"""Tests of paired differences, by numbers of textbooks, and how often they alarm where there is nothing to find."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import ttest_1samp

from raysim import study
from raysim.comparison import paired_tests
from raysim.comparison.paired_tests import PairedResult, holm, result_of, seeds_needed
from raysim.results.measures import find
from raysim.studies import study_file, tables
from tests.raysim.small_study import TEXT, keep, study_of

DOCS = Path(__file__).parents[3] / "docs" / "studies"
STATISTICS = "statistics: true\ncompare: [{rows: [Strong prox], against: FedAvg, measure: accuracy}]\n"


def test_students_t_and_wilcoxon_of_a_textbook() -> None:
    """Student's own sleep data (1908): t = 4.0621 with 9 degrees of freedom; ranks by R's wilcox.test without zeros."""
    found = result_of([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])
    assert found.t == pytest.approx(0.002833, abs=1e-6)
    assert found.wilcoxon is not None and found.wilcoxon < 0.01
    # All six of one sign: 2 of the 64 signs are as far from even.
    assert result_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).wilcoxon == pytest.approx(2 / 64)
    assert result_of([1.0, 2.0, 3.0, 4.0, 5.0]).wilcoxon == pytest.approx(2 / 32)


@pytest.mark.parametrize(
    "differences", [[1, 1, 2, 2, -1, 3], [3, 2, 6, 2, 5, 5, -2], [3, 3, 3, -3, 3, 3, 3], [0, -2, 1.5, 4, -4, 0.5]]
)
def test_ranks_are_those_of_all_signs_where_differences_are_equal(differences: list[float]) -> None:
    known = np.array([one for one in differences if one])
    ranks = stats.rankdata(abs(known))
    signs = np.array([*itertools.product([-1, 1], repeat=len(known))])
    far = abs((signs * ranks).sum(axis=1)) >= abs((np.sign(known) * ranks).sum()) - 1e-9
    assert result_of(differences).wilcoxon == pytest.approx(far.mean())
    shares = [round(0.7 + one / 360, 6) - 0.7 for one in differences]  # accuracies of 360 samples, as tables have them
    assert result_of(shares).wilcoxon == pytest.approx(far.mean())


def test_one_pair_and_equal_pairs_tell_nothing() -> None:
    assert result_of([0.5]) == PairedResult(None, None, None) == result_of([])
    assert result_of([0.0, 0.0, 0.0]) == PairedResult(1.0, 1.0, None)
    assert result_of([0.25, 0.25, 0.25]).t == 0.0 and result_of([0.25, 0.25, 0.25]).needed == 2


@pytest.mark.parametrize(("effect", "count"), [(1.0, 10), (0.5, 34), (0.2, 199)])
def test_seeds_for_a_power_of_80_percent_are_those_of_g_power(effect: float, count: int) -> None:
    """Two-sided paired t at 5 %, as G*Power prints them."""
    assert seeds_needed(-effect, 1.0) == count
    assert seeds_needed(effect / 100, 1.0) == (10_000 if effect < 1 else seeds_needed(0.01, 1.0))


def test_of_seeds_that_share_samples_it_takes_more_or_no_number_does() -> None:
    """A noncentral t in each of 200,000 draws: 10 pairs find a difference of one deviation only if they share none."""
    generator = np.random.default_rng(0)
    needed = seeds_needed(1.0, 1.0, 0.1)
    assert needed is not None and 10 < needed < 10_000
    for pairs, enough in ((needed, True), (needed * 2 // 3, False)):
        # Means vary by 1 / pairs + 0.1, deviations as those of independent values (chi with pairs − 1).
        error = math.sqrt(1 / pairs + 0.1)
        means = 1.0 + error * generator.standard_normal(200_000)
        deviations = np.sqrt(generator.chisquare(pairs - 1, 200_000) / (pairs - 1))
        found = np.mean(np.abs(means) / (deviations * error) > stats.t.ppf(0.975, pairs - 1))
        assert (found >= 0.8 - 0.005) == enough
    assert seeds_needed(0.5, 1.0, 0.1) == 10_000


def test_holm_by_hand() -> None:
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0] and holm([]) == [] and holm([None]) == [None]


@pytest.fixture(scope="module")
def residuals() -> NDArray[np.float64]:
    """What is left of kept accuracies when the mean of their row and column is taken off, in the spread of one run."""
    kept = study_file.read(DOCS / "attacks-defenses.yaml")
    cells = [np.array([*own.values()]) for own in tables.values(kept, kept.measures).values()]
    return np.concatenate([(own - own.mean()) * np.sqrt(len(own) / (len(own) - 1)) for own in cells])


def test_a_row_beside_itself_alarms_in_no_more_than_5_percent(
    residuals: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,000 pairs of rows that are the same in truth, resampled from residuals of real runs."""
    monkeypatch.setattr(paired_tests, "seeds_needed", lambda mean, deviation: None)  # a search, and not looked at
    generator = np.random.default_rng(0)
    drawn = generator.choice(residuals, (1000, 2, 10))
    found = [result_of((first - second).tolist()) for first, second in drawn]
    assert np.mean([one.t is not None and one.t < 0.05 for one in found]) <= 0.05
    assert np.mean([one.wilcoxon is not None and one.wilcoxon < 0.05 for one in found]) <= 0.05


def test_a_table_of_rows_that_are_the_same_alarms_in_no_more_than_5_percent(residuals: NDArray[np.float64]) -> None:
    """Anywhere in four differences, corrected: 5,000 tables."""
    pairs = np.random.default_rng(0).choice(residuals, (5000, 4, 2, 5))
    fours = np.asarray(ttest_1samp(pairs[:, :, 0] - pairs[:, :, 1], 0, axis=2).pvalue).tolist()
    assert np.mean([min(four) < 0.05 for four in fours]) > 0.15  # without the correction
    assert np.mean([any(p is not None and p < 0.05 for p in holm(four)) for four in fours]) <= 0.05


def test_a_difference_that_is_there_is_found(residuals: NDArray[np.float64]) -> None:
    """The other way round: with the number of seeds that is asked for, four of five are."""
    generator, deviation = np.random.default_rng(1), float(np.std(residuals) * np.sqrt(2))
    needed = seeds_needed(deviation, deviation)
    assert needed == 10
    noise = generator.normal(scale=deviation, size=(500, needed))
    told = [result_of((deviation + one).tolist()).t for one in noise]
    assert np.mean([p is not None and p < 0.05 for p in told]) == pytest.approx(0.8, abs=0.04)


def test_a_study_that_asks_for_statistics_has_tests_and_marks(tmp_path: Path) -> None:
    text = TEXT.replace("seeds: [0, 1]", "seeds: [0, 1, 2]").replace("best_accuracy: best", "loss: loss")
    (tmp_path / "small.yaml").write_text(
        text.replace("  Strong prox:", "  Same: {method.name: fedavg}\n  Strong prox:") + STATISTICS, encoding="utf-8"
    )
    found = study_file.read(tmp_path / "small.yaml")
    shift = {"FedAvg": [0.0, 0.0, 0.0], "Same": [0.02, -0.01, 0.0], "Strong prox": [0.1, 0.11, 0.12]}
    for cell in found.cells():
        value = 0.5 + cell.seed / 100 - shift[cell.row][cell.seed % 5]
        keep(cell, accuracy=[value], loss=[1 - value])
    tables.write_table(found)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    # Strong prox is 0.11 ± 0.01 below: t = 0.11 · √3 / 0.01 = 19.05, p = 0.0027; seeds 0, 1, 2 of MLP alone.
    assert "| FedAvg | **51.00 ± 1.00** (3) | **0.4900 ± 0.0100** (3) | **55.00** (1) | **0.4500** (1) |" in page
    assert "| Same | ≈ 50.67 ± 2.31 (3) | ≈ 0.4933 ± 0.0231 (3) | ≈ 53.00 (1) | ≈ 0.4700 (1) |" in page
    assert "| Strong prox | 40.00 ± 0.00 (3) | 0.6000 ± 0.0000 (3) | ≈ 45.00 (1) |" in page
    assert "| Strong prox − FedAvg | MLP, last | 0.003 | 0.003 | 0.250 | 0.250 | 3 |" in page
    words = " ".join(page.split())
    assert paired_tests.ABOUT in words and paired_tests.ABOUT_MARKS in words


def test_rows_are_compared_with_the_first_where_none_are_named(tmp_path: Path) -> None:
    found = study_of(tmp_path, "statistics: true\n")
    assert [(one.rows, one.against, one.measure.name) for one in found.compare] == [
        (("Strong prox",), "FedAvg", "accuracy"),
        (("Strong prox",), "FedAvg", "best_accuracy"),
    ]
    assert study_of(tmp_path).compare == ()


def test_a_study_without_statistics_has_neither(tmp_path: Path) -> None:
    found = study_of(tmp_path, STATISTICS.replace("true", "false"))
    for cell in found.cells():
        keep(cell, accuracy=[0.5 + cell.seed / 10])
    assert study.main([str(tmp_path / "small.yaml"), "--table-only"]) == 0
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "difference [95 % interval]" in page and "Holm" not in page and "**" not in page


def _marks(**rows: dict[int, float]) -> dict[str, str]:
    values = {(row, "", "accuracy"): own for row, own in rows.items()}
    return {row: mark for (row, _, _), mark in paired_tests.marks(values, [*rows], [""], [find("accuracy")]).items()}


def test_where_no_value_is_better_there_is_no_best_row() -> None:
    values = {("few", "", "participants"): {0: 3.0, 1: 4.0}, ("many", "", "participants"): {0: 8.0, 1: 9.0}}
    assert paired_tests.marks(values, ["few", "many"], [""], [find("participants")]) == {}


def test_a_row_that_lacks_hard_seeds_is_not_the_best_for_that() -> None:
    """Its mean, 0.80, is above the other's, 0.74, which beats it on every seed that both have, and by the test too."""
    easy = {0: 0.8, 1: 0.81, 2: 0.79}
    whole = {seed: value + 0.1 + seed / 1000 for seed, value in easy.items()} | {3: 0.5, 4: 0.5}
    assert _marks(easy=easy, whole=whole) == {"whole": "best"}
    assert _marks(easy=easy, apart={7: 0.9, 8: 0.9}) == {}  # no seed says which is better


def test_one_of_five_seeds_makes_no_row_the_best() -> None:
    """It is ahead at its seed by a lot, and the row with all five is behind it there, but beaten by no whole row."""
    whole = {seed: 0.8 + seed / 1000 for seed in range(5)}
    assert _marks(whole=whole, one={0: 0.9}) == {}
    assert _marks(whole=whole, one={0: 0.7}) == {"whole": "best", "one": "near"}
    assert _marks(whole=whole, other=dict.fromkeys(range(5), 0.9), one={4: 0.7})["other"] == "best"
    # Seeds of a row with a value that is not finite count too: it has run them.
    assert _marks(whole={0: 0.8}, other={0: 0.7}, lost={0: math.inf, 1: 0.5}) == {}


def test_no_row_is_the_best_where_each_is_beaten_and_equal_means_have_one() -> None:
    circle = {"a": {0: 0.5, 2: 0.4}, "b": {0: 0.4, 1: 0.5}, "c": {1: 0.4, 2: 0.5}}
    assert _marks(**circle) == {}
    turned = {"a": {0: 0.1, 1: 0.2, 2: 0.3}, "b": {0: 0.2, 1: 0.3, 2: 0.1}, "c": {0: 0.3, 1: 0.1, 2: 0.2}}
    assert _marks(**turned) == {"a": "best", "b": "near", "c": "near"}
