"""Differences between two rows of a study over equal seeds, each with its 95 % interval.

Rows of one seed share data split, cohorts and initial model, so that their difference varies less than the rows do.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, model_validator

from raysim.report.measures import Measure
from raysim.studies.entries import Entry, Measured, heading
from raysim.units import Scale, counted, scale

Values = Mapping[tuple[str, str, str], Mapping[int, float]]
"""(row, column, measure) → seed → its value in the finished cell."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences and the interval that holds the true mean with 95 % confidence."""

    mean: float
    low: float | None
    """None with one seed, whose difference has no interval."""
    high: float | None
    seeds: int

    @property
    def told(self) -> bool:
        """Whether the interval excludes zero, so that the rows tell which of the two is larger."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def text(self, factor: float, form: str) -> str:
        """As tables and sentences have it, ``+1.17 [−0.40, +2.74], 3 seeds``; ``form`` is that of a number."""
        numbers = [_signed(factor * value, form) for value in (self.mean, self.low, self.high) if value is not None]
        interval = f" [{numbers[1]}, {numbers[2]}]" if len(numbers) > 1 else ", cannot be told"
        return f"{numbers[0]}{interval}, {counted(self.seeds, 'seed')}"


class Compare(Entry):
    """One entry of a study file's ``compare``: rows, each less the row ``against``."""

    rows: Annotated[list[str], Field(min_length=1)]
    against: str
    measure: Measured
    columns: Annotated[list[str], Field(min_length=1)] | None = None
    """None: all of the study."""

    @model_validator(mode="after")
    def _has_two_rows(self) -> Compare:
        if self.against in self.rows:
            raise ValueError(f"{self.against!r} is compared with itself.")
        return self


def pairs(values: Mapping[int, float], against: Mapping[int, float]) -> list[float]:
    """The differences of two rows over the seeds that both have, in their order."""
    return [values[seed] - against[seed] for seed in sorted(set(values) & set(against))]


def paired(values: Mapping[int, float], against: Mapping[int, float]) -> Difference | None:
    """The difference of two rows over the seeds that both have (Student's t with n − 1 degrees of freedom).

    Args:
        values: seed → the first row's value.
        against: the same of the row that is subtracted.

    Returns:
        The mean difference and its 95 % interval; None where no seed is common, no interval where one is.
    """
    differences = pairs(values, against)
    if not differences:
        return None
    mean, count = statistics.fmean(differences), len(differences)
    if count == 1:
        return Difference(mean, None, None, 1)
    from scipy.stats import t

    half = float(t.ppf((1 + CONFIDENCE) / 2, count - 1)) * statistics.stdev(differences) / math.sqrt(count)
    return Difference(mean, mean - half, mean + half, count)


def table(compare: Sequence[Compare], values: Values, headings: Mapping[Measure, str], columns: Sequence[str]) -> str:
    """The Markdown table of all comparisons of which a pair is finished; empty if none is.

    Args:
        headings: measure → its heading in the study's table; others have their name.
        columns: the study's, in their order.
    """
    scales = {entry.measure: _scale(entry.measure, values) for entry in compare}
    found: dict[str, dict[tuple[str, Measure], str]] = {}
    for entry in compare:
        unit = scales[entry.measure]
        for row, column in itertools.product(entry.rows, entry.columns or columns):
            first, second = (values.get((name, column, entry.measure.name), {}) for name in (row, entry.against))
            if (difference := paired(first, second)) is not None:
                texts = found.setdefault(f"{row} − {entry.against}", {})
                texts[column, entry.measure] = difference.text(unit.factor, unit.form)
    if not found:
        return ""
    there = {place for texts in found.values() for place in texts}
    places = [(column, measure) for column in columns for measure in scales if (column, measure) in there]
    heads = [
        scales[measure].heading(heading(column, headings.get(measure, measure.name))) for column, measure in places
    ]
    lines = ["| difference [95 % interval] | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    lines += [f"| {pair} | " + " | ".join(texts.get(p, "") for p in places) + " |" for pair, texts in found.items()]
    return "\n".join(lines)


def _scale(measure: Measure, values: Values) -> Scale:
    """How all differences of a measure are written; a difference of shares is in points."""
    own = scale(
        measure.unit, [one for key, seeds in values.items() if key[2] == measure.name for one in seeds.values()]
    )
    return replace(own, symbol="points") if measure.unit == "percent" else own


def _signed(value: float, form: str) -> str:
    """A number with its sign; what rounds to zero has none."""
    text = f"{value:+{form}}"
    return text.removeprefix("+").removeprefix("-") if float(text) == 0 else text.replace("-", "−")
