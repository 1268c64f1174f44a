"""A paper's differences between methods, beside those that were measured here, and whether they hold.

The paper's difference is that of its two printed numbers. It is *confirmed* where the 95 % interval of the difference
over equal seeds lies on the paper's side of zero, and *refuted at this size* where it does not and leaves the paper's
difference out. Otherwise, and with fewer than three seeds, the measured seeds cannot tell, and the table says how many
would find the paper's difference.
"""

from __future__ import annotations

import math
import re

from raysim.comparison.differences import Difference, mean_difference, pairs
from raysim.comparison.outcomes import Outcomes
from raysim.comparison.paired_tests import MOST_SEEDS, POWER, seeds_needed
from raysim.comparison.table import Entry, Head, Table
from raysim.units import deviation

LEAST_SEEDS = 3
"""Two differences that are alike by chance have an interval as narrow as any."""
NUMBER = re.compile(r"[-+−]?(\d+(\.\d*)?|\.\d+)([eE][-+−]?\d+)?")
ABOUT = (
    "*confirmed*: the whole interval lies on the paper's side of zero, *but smaller (larger) here* if it excludes the "
    "paper's difference; *refuted at this size*: it does not, and excludes the paper's difference (*the other way "
    "round*: it lies beyond zero), for the data, network and clients here; *not told*: it holds zero and the paper's "
    f"difference. *N seeds would* show so large a difference with a power of {100 * POWER:g} %, at the spread seen "
    "here; *though N seeds are enough*: as many have run, and it does not show; *more than the N folds*: it takes more "
    "seeds than there are; *more samples*: no number of seeds shows it, as they share theirs; *none*: the paper's two "
    "numbers are equal. The paper's difference is taken as printed, as if it had no spread. No interval is corrected "
    "for the number of them."
)


def table(outcomes: Outcomes) -> Table:
    """Every asked-for difference of which the paper has both numbers: the paper's, the one here, and the verdict."""
    rows, records = list[tuple[str, tuple[Entry, ...]]](), list[dict[str, object]]()
    for row, column, pairing, first, second in outcomes.compared():
        measure = pairing.measure
        printed = [_number(outcomes.paper.get((one, column, measure.name), "")) for one in (row, pairing.against)]
        if printed[0] is None or printed[1] is None or not (differences := pairs(first, second)):
            continue
        scale, claimed = outcomes.scale_of_differences(measure), printed[0] - printed[1]
        here, spread = mean_difference(differences, outcomes.resampled), deviation(differences)
        told = verdict(claimed / scale.factor, here, spread, outcomes.resampled, outcomes.folds)
        of = ", ".join(filter(None, (column, outcomes.heading(measure))))
        paper = f"{claimed:+{scale.form}}".replace("-", "−")
        rows.append(
            (f"{row} − {pairing.against}", tuple(map(Entry, (of, paper, here.text(scale.factor, scale.form), told))))
        )
        place = {"row": row, "against": pairing.against, "column": column, "measure": measure.name}
        records.append({**place, "paper": claimed / scale.factor, "here": here.mean, "verdict": told})
    heads = tuple(Head("", text) for text in ("of", "paper", "here [95 % interval]", "the paper's difference is"))
    return Table("claims", "difference", heads, tuple(rows), tuple(records), (ABOUT,) if rows else ())


def verdict(
    claimed: float, here: Difference, spread: float | None, resampled: float = 0.0, folds: int | None = None
) -> str:
    """Whether a paper's difference is confirmed, refuted, or out of reach of so few seeds.

    Args:
        claimed: the paper's difference, in the unit of ``here``.
        spread: standard deviation of the paired differences; None with one seed.
        resampled: test samples per training sample, where every seed draws both anew from one pool.
        folds: how many seeds there are at most, where each is a fold; None: no limit.
    """
    if math.isnan(here.mean):
        return "not told: not all values are finite"
    if here.low is None or here.high is None or spread is None:
        return "not told by one seed"
    if here.seeds < LEAST_SEEDS:
        return "not told by two seeds"
    if claimed == 0:
        return "none, and one is told here" if here.told else "none, and none is told here"
    low, high = sorted((here.low, here.high) if claimed > 0 else (-here.low, -here.high))
    size = abs(claimed)
    if high < 0:
        return "refuted at this size: the other way round"
    if low > 0:
        return "confirmed" if low <= size <= high else f"confirmed, but {'smaller' if size > high else 'larger'} here"
    if not low <= size <= high:
        return "refuted at this size"
    needed = seeds_needed(size, spread, resampled) or 2
    if needed <= here.seeds:
        return f"not told, though {needed} seeds are enough"
    if folds and needed > folds:
        return f"not told: it takes more than the {folds} folds"
    if needed < MOST_SEEDS:
        return f"not told: {needed} seeds would"
    return "not told: it takes more samples" if resampled else f"not told: > {MOST_SEEDS:,} seeds would"


def _number(text: str) -> float | None:
    """The first number of a printed value, ``81.45 ± 0.3`` say."""
    found = NUMBER.match(text.strip())
    return float(found[0].replace("−", "-")) if found else None
