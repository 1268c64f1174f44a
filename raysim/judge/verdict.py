"""The verdict on two groups of runs: which is better by one measure, by how much, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from raysim.comparison import paired_tests
from raysim.comparison.claims import LEAST_SEEDS
from raysim.comparison.differences import NOT_FINITE, Difference, mean_difference, pairs
from raysim.judge.refusals import Refusal, listed
from raysim.results.measures import Measure
from raysim.units import Scale, counted, scale


@dataclass(frozen=True)
class Groups:
    """The two groups that are judged."""

    a: str
    """Letter and method of the first."""
    b: str
    measure: Measure

    def plain(self) -> dict[str, Any]:
        """The question as JSON has it."""
        return {"a": self.a, "b": self.b, "measure": self.measure.name}


@dataclass(frozen=True)
class Refused:
    """Two groups that do not compare."""

    groups: Groups
    refusals: Sequence[Refusal]

    def plain(self) -> dict[str, Any]:
        """The refusal as JSON has it."""
        reasons = [refusal.plain() for refusal in self.refusals]
        return {"verdict": "refused", **self.groups.plain(), "refusals": reasons}

    def text(self) -> str:
        """The reasons, a line each."""
        number = counted(len(self.refusals), "reason")
        head = f"refused: {self.groups.a} and {self.groups.b} do not compare, {number}"
        return "\n".join([head, *(f"  {refusal}" for refusal in self.refusals)])


@dataclass(frozen=True)
class Verdict:
    """The answer for two groups that compare."""

    groups: Groups
    values: Mapping[int, tuple[float, float]]
    """Seed → the measure in the run of each group."""
    differences: Mapping[str, tuple[str, str]]
    """Options in which the groups differ: those of what is compared, and equally tuned ones."""
    spent: Mapping[str, tuple[float, float]]
    """Part of the budget, or of other costs → its sum over the runs of each group."""
    notes: tuple[str, ...] = ()

    @cached_property
    def gains(self) -> list[float]:
        """Differences in favor of A, one a seed, in the unit of the measure."""
        first, second = ({seed: pair[place] for seed, pair in self.values.items()} for place in (0, 1))
        return pairs(second, first) if self.groups.measure.best == "smallest" else pairs(first, second)

    @property
    def gain(self) -> Difference:
        """Their mean and its interval; negative where B is better."""
        return mean_difference(self.gains)

    @property
    def better(self) -> str:
        """``A``, ``B``, or empty where the interval holds 0, there is none, or fewer than three seeds have one."""
        return "" if not self.gain.told or self.gain.seeds < LEAST_SEEDS else "A" if self.gain.mean > 0 else "B"

    def plain(self) -> dict[str, Any]:
        """The verdict as JSON has it; shares of one, bytes, seconds."""
        gain, test = self.gain, paired_tests.result_of(self.gains)
        return {
            "verdict": f"{self.better} is better" if self.better else "cannot tell",
            **self.groups.plain(),
            "gain of A": {"mean": gain.mean, "low": gain.low, "high": gain.high},
            "seeds": list(self.values),
            "values": {str(seed): [*pair] for seed, pair in self.values.items()},
            "tests": {"t p": test.t, "Wilcoxon p": test.wilcoxon, "seeds needed": test.needed},
            "differences": {path: [*pair] for path, pair in self.differences.items()},
            "spent": {name: [*pair] for name, pair in self.spent.items()},
            "notes": [*self.notes],
        }

    def text(self) -> str:
        """The verdict in words."""
        lines, unit = [f"{self._sentence()}."], self._scale
        for place, name in enumerate((self.groups.a, self.groups.b)):
            text = unit.text([pair[place] for pair in self.values.values()])
            lines.append(f"  {name}: {self._title} {text} {unit.symbol}".rstrip())
        test = paired_tests.result_of(self.gains)
        if test.t is not None and test.wilcoxon is not None:
            lines.append(f"  paired t: p {test.t:.3f}; Wilcoxon: p {test.wilcoxon:.3f}; seeds {listed(self.values)}")
        lines.append(f"  options that differ (A, B): {_beside(self.differences)}")
        sums = {name: (f"{own:,.10g}", f"{others:,.10g}") for name, (own, others) in self.spent.items()}
        lines.append(f"  spent over all seeds (A, B): {_beside(sums)}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _sentence(self) -> str:
        gain, names = self.gain, (self.groups.a, self.groups.b)
        seeds = counted(gain.seeds, "paired seed")
        if self.better == "A":
            return f"{names[0]} is better than {names[1]} by {self._said(gain)}, {seeds}"
        if self.better == "B":
            return f"{names[1]} is better than {names[0]} by {self._said(_reversed(gain))}, {seeds}"
        if math.isnan(gain.mean):
            return f"cannot tell {names[0]} from {names[1]}: the difference in {self._title} {NOT_FINITE}, {seeds}"
        told = f"cannot tell {names[0]} from {names[1]}: {self._said(gain)} in favor of A, {seeds}"
        if gain.seeds < LEAST_SEEDS:
            return f"{told}, too few to tell: {LEAST_SEEDS} are the least, and five or more the rule"
        needed = paired_tests.result_of(self.gains).needed
        if needed is None:
            return f"{told}; no number of seeds shows a difference of 0"
        most = needed >= paired_tests.MOST_SEEDS
        count = f"more than {paired_tests.MOST_SEEDS:,}" if most else f"about {needed:,}"
        return f"{told}; {count} new seeds would be needed for a difference of this size and spread"

    def _said(self, gain: Difference) -> str:
        """A difference with its interval, unit and measure: ``1.20 [0.40, 2.00] points of accuracy``."""
        mean, *interval = (
            f"{self._scale.factor * value:{self._scale.form}}".replace("-", "−")
            for value in (gain.mean, gain.low, gain.high)
            if value is not None
        )
        unit = "points" if self.groups.measure.unit == "percent" else self._scale.symbol
        text = f"{mean} [{', '.join(interval)}]" if interval else mean
        return " ".join(filter(None, (text, unit, "of" if unit else "in", self._title)))

    @property
    def _title(self) -> str:
        return self.groups.measure.name.replace("_", " ")

    @property
    def _scale(self) -> Scale:
        return scale(self.groups.measure.unit, (value for pair in self.values.values() for value in pair))


def _reversed(gain: Difference) -> Difference:
    """The difference from the other side."""
    low, high = (None if value is None else -value for value in (gain.high, gain.low))
    return Difference(-gain.mean, low, high, gain.seeds)


def _beside(values: Mapping[str, tuple[str, str]]) -> str:
    """Names with both values; one value where they agree."""
    return "; ".join(
        f"{name} {own}" if own == other else f"{name} {own}, {other}" for name, (own, other) in values.items()
    )
