"""Differences between two rows of a table over equal seeds, each with its 95 % interval.

Runs of one seed share data split, cohorts and initial model, so that their difference varies less than the rows do.

Where every seed draws test and training samples anew from one pool (folds of a cross-validation, say), two seeds share
most of their samples: the variance of a mean over n seeds is then not 1/n of the spread's square, but about 1/n plus
the ratio of test to training samples of it (Nadeau & Bengio 2003, eq. 9; Bouckaert & Frank 2004 for repeated folds).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from raysim.units import counted

CONFIDENCE = 0.95
NOT_FINITE = "cannot be computed: not all values are finite"
"""The words for a difference of rows one of which has an infinite value."""


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences and the interval that holds the true mean with 95 % confidence."""

    mean: float
    """NaN where a pair has no finite difference (an infinite loss, say)."""
    low: float | None
    """None with one seed, whose difference has no interval, and where the mean is NaN."""
    high: float | None
    seeds: int

    @property
    def told(self) -> bool:
        """Whether the interval excludes zero, so that the rows tell which of the two is larger."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def text(self, factor: float, form: str) -> str:
        """As tables and sentences have it, ``+1.17 [−0.40, +2.74], 3 seeds``; ``form`` is that of a number."""
        if math.isnan(self.mean):
            return f"{NOT_FINITE}, {counted(self.seeds, 'seed')}"
        ends = [_signed(factor * value, form) for value in (self.low, self.high) if value is not None]
        interval = f" [{', '.join(ends)}]" if ends else ", cannot be told"
        mean = _signed(factor * self.mean, form)
        return f"{mean[1:] if _is_zero(mean) else mean}{interval}, {counted(self.seeds, 'seed')}"


def pairs(values: Mapping[int, float], against: Mapping[int, float]) -> list[float]:
    """The differences of two rows over the seeds that both have, in their order."""
    return [values[seed] - against[seed] for seed in sorted(set(values) & set(against))]


def paired(values: Mapping[int, float], against: Mapping[int, float], resampled: float = 0.0) -> Difference | None:
    """The difference of two rows over the seeds that both have (Student's t with n − 1 degrees of freedom).

    Args:
        values: seed → the first row's value.
        against: the same of the row that is subtracted.
        resampled: test samples per training sample, where every seed draws both anew from one pool.

    Returns:
        The mean difference and its 95 % interval; None where no seed is common, no interval where one is.
    """
    differences = pairs(values, against)
    return mean_difference(differences, resampled) if differences else None


def mean_difference(differences: Sequence[float], resampled: float = 0.0) -> Difference:
    """The mean of one difference or more, with its interval; NaN without one where a difference is not finite."""
    count = len(differences)
    if not all(map(math.isfinite, differences)):
        return Difference(math.nan, None, None, count)
    mean = statistics.fmean(differences)
    if count == 1:
        return Difference(mean, None, None, 1)
    half = quantile(count) * statistics.stdev(differences) * math.sqrt(1 / count + resampled)
    return Difference(mean, mean - half, mean + half, count)


def quantile(count: int) -> float:
    """Half the 95 % interval of a mean of ``count`` values, in standard errors (Student's t)."""
    from scipy.special import stdtrit  # scipy.stats has the same, and is slow to load

    return float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))


def _signed(value: float, form: str) -> str:
    """A number with its sign, which a number that rounds to zero keeps: it says on which side of zero it lies."""
    return f"{value:+{form}}".replace("-", "−") if value else f"{value:{form}}"


def _is_zero(text: str) -> bool:
    """Whether a signed number rounds to zero."""
    return text[0] in "+−" and float(text[1:]) == 0
