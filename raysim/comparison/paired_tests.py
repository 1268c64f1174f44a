"""Tests of differences between rows of a table over equal seeds, and the marks of the best rows that follow from them.

Runs of equal seeds share data split, cohorts and initial model, so that differences are paired: Student's t and
Wilcoxon's signed ranks, both two-sided, corrected by Holm's procedure for the number of differences in a table.
"""

from __future__ import annotations

import itertools
import math
import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from raysim.comparison.differences import pairs
from raysim.comparison.outcomes import Values
from raysim.comparison.table import Mark
from raysim.results.measures import Measure

ALPHA, POWER = 0.05, 0.8
MOST_SEEDS = 10_000
"""Larger numbers of seeds are not told apart."""
MOST_EXACT = 50
"""Pairs up to which Wilcoxon's distribution is computed exactly."""
EQUAL = 1e-3
"""Differences that are no farther apart, as a share of the largest, are equal to Wilcoxon's test."""
ABOUT = (
    "p-values are two-sided; *Holm*: corrected for all differences of this table; *seeds*: how many would show a "
    f"difference of this size and spread at {100 * ALPHA:g} % with a power of {100 * POWER:g} %."
)
ABOUT_MARKS = (
    "**Bold**: the best mean of a column, of the rows that have all its seeds and that no other beats over the seeds "
    f"that both have; ≈: not told from it at {100 * ALPHA:g} % (paired t over these seeds, Holm-corrected over the "
    "rows of the column)."
)


@dataclass(frozen=True)
class PairedResult:
    """Results of tests of paired differences; None with fewer than two pairs, or where one is not finite."""

    t: float | None
    """The p-value of Student's t."""
    wilcoxon: float | None
    """That of Wilcoxon's signed ranks, which with fewer than 6 pairs is never below 5 %."""
    needed: int | None
    """Pairs that would be needed; :data:`MOST_SEEDS` also for more."""


def result_of(differences: Sequence[float]) -> PairedResult:
    """Test whether the mean (t) and the middle (Wilcoxon) of paired differences are zero."""
    if len(differences) < 2 or not all(map(math.isfinite, differences)):
        return PairedResult(None, None, None)
    from scipy.stats import ttest_1samp, wilcoxon

    if not any(differences):
        return PairedResult(1.0, 1.0, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # differences that are all the same, or few
        t = float(ttest_1samp(differences, 0.0).pvalue)
        other = [one for one in differences if one]  # zeros tell nothing
        ranks = _exact_wilcoxon(other) if len(other) <= MOST_EXACT else float(wilcoxon(other).pvalue)
    return PairedResult(t, ranks, seeds_needed(statistics.fmean(differences), statistics.stdev(differences)))


def _exact_wilcoxon(differences: Sequence[float]) -> float:
    """The two-sided p-value of signed ranks, over all 2^n signs; equal differences share the mean of their ranks.

    Accuracies are shares of whole samples, so that differences are often equal, and rounded. Those whose absolute
    values are within a thousandth of the largest are taken as equal. Which are never changes that the p-value holds.
    """
    import numpy as np
    from scipy.stats import rankdata

    sizes = np.abs(differences)
    order = np.argsort(sizes)
    groups = np.empty(len(sizes), np.int64)
    groups[order] = np.concatenate([[0], np.cumsum(np.diff(sizes[order]) > EQUAL * sizes.max())])
    ranks = np.rint(2 * rankdata(groups)).astype(np.int64)  # twice the ranks are whole
    ways = np.zeros(int(ranks.sum()) + 1)
    ways[0] = 1
    for rank in ranks.tolist():
        ways[rank:] += ways[:-rank].copy()
    positive = int(ranks[np.asarray(differences) > 0].sum())
    least = min(positive, int(ranks.sum()) - positive)
    return min(1.0, 2 * float(ways[: least + 1].sum()) / 2.0 ** len(ranks))


def seeds_needed(mean: float, deviation: float, resampled: float = 0.0) -> int | None:
    """The smallest number of pairs at which a paired t test finds this difference with :data:`POWER`.

    Args:
        mean: of the differences.
        deviation: their standard deviation.
        resampled: test samples per training sample, where every seed draws both anew from one pool.

    Returns:
        None if the mean is zero, which no number shows; at most :data:`MOST_SEEDS`.
    """
    if mean == 0:
        return None
    if deviation == 0:
        return 2
    effect = abs(mean) / deviation
    low, high = 1, 2
    while high < MOST_SEEDS and _power(high, effect, resampled) < POWER:
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(middle, effect, resampled) >= POWER else (middle, high)
    return high


def _power(count: int, effect: float, resampled: float) -> float:
    """The chance that a two-sided paired t test of ``count`` pairs finds an effect, in standard deviations."""
    from scipy.stats import nct, t

    limit = t.ppf(1 - ALPHA / 2, count - 1)
    # The other tail adds nothing at this power.
    return float(nct.sf(limit, count - 1, effect / math.sqrt(1 / count + resampled)))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """p-values corrected for their number (Holm 1979), so that at most α of tables have one below α by chance.

    None (nothing to test) stays None, and does not count.
    """
    order = sorted((value, place) for place, value in enumerate(values) if value is not None)
    found: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (value, place) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * value))
        found[place] = largest
    return found


def marks(
    values: Values, rows: Sequence[str], columns: Sequence[str], measures: Sequence[Measure]
) -> dict[tuple[str, str, str], Mark]:
    """(row, column, measure) → ``best`` for the best mean, ``near`` for those that are not told from it.

    The best row has the best mean of those that no other row beats over the seeds that both have, as the tests compare
    them. It has every seed that any row of the column has: one of five seeds does not make a row the best, nor does a
    hard seed that it lacks. A column without such a row has no marks, and a row with a value that is not finite has
    none.
    """
    found: dict[tuple[str, str, str], Mark] = {}
    for column, measure in itertools.product(columns, measures):
        known = {row: values.get((row, column, measure.name), {}) for row in rows}
        there = {row: own for row, own in known.items() if own and all(map(math.isfinite, own.values()))}
        if not measure.best or len(there) < 2:
            continue
        sign = 1 if measure.best == "largest" else -1
        seeds = {seed for own in known.values() for seed in own}
        complete = {row: own for row, own in there.items() if seeds <= set(own)}
        unbeaten = [row for row, own in complete.items() if not any(_beats(one, own, sign) for one in there.values())]
        if not unbeaten:
            continue
        best = max(unbeaten, key=lambda row: sign * statistics.fmean(there[row].values()))
        others = [row for row in there if row != best]
        corrected = holm([result_of(pairs(there[row], there[best])).t for row in others])
        found[best, column, measure.name] = "best"
        for row, p in zip(others, corrected, strict=True):
            if p is None or p > ALPHA:
                found[row, column, measure.name] = "near"
    return found


def _beats(first: Mapping[int, float], second: Mapping[int, float], sign: int) -> bool:
    """Whether the first row has the better mean over the seeds that both have; ``sign``: −1 where less is better."""
    seeds = set(first) & set(second)
    return sign * math.fsum(first[seed] for seed in seeds) > sign * math.fsum(second[seed] for seed in seeds)
