"""Measured values of runs, each at a row, a column and a seed: all that tables of a comparison are made of."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from raysim.results.measures import Measure
from raysim.units import Scale, scale

Values = Mapping[tuple[str, str, str], Mapping[int, float]]
"""(row, column, measure) → seed → its value in the finished run."""
Heads = Mapping[tuple[str, str, int], str]
"""(row, column, seed) → head of the run's proof."""
HEAD = re.compile("[0-9a-f]{64}")
"""The head of a proof."""
MOST_HEADS = 60
"""Runs up to which every head is listed in short form."""
DIGITS = 8
"""Length of a head in short form."""


@dataclass(frozen=True)
class Pairing:
    """Rows that are compared with one other row by one measure."""

    rows: tuple[str, ...]
    against: str
    measure: Measure
    columns: tuple[str, ...] | None = None
    """None: all."""


@dataclass(frozen=True)
class Outcomes:
    """Values of finished runs, and how they are to be compared."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    """Names of the columns; one without a name if there is only one."""
    measures: Mapping[Measure, str]
    """Measure → its heading."""
    values: Values
    pairings: tuple[Pairing, ...] = ()
    statistics: bool = False
    """Whether differences are tested, and the best rows marked."""
    failed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(row, column) → number of its runs that failed."""
    paper: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """(row, column, measure) → the number that the method's paper has there, in the unit of the table."""
    heads: Heads = field(default_factory=dict)
    resampled: float = 0.0
    """Test samples per training sample, where every seed draws both anew from one pool; 0: seeds share no drawing."""
    folds: int | None = None
    """Where a seed is a fold of the same samples: how many there are, and so the most seeds; None: no limit."""
    chosen: bool = False
    """Whether each row is the one with every seed that was chosen among several, whose failures count as its own."""

    def runs(self) -> set[tuple[str, str, int]]:
        """Row, column and seed of every finished run."""
        return {(row, column, seed) for (row, column, _), own in self.values.items() for seed in own}

    def heading(self, measure: Measure) -> str:
        """The words over a measure's columns."""
        return self.measures.get(measure, measure.name)

    def scale(self, measure: Measure) -> Scale:
        """The scale on which all values of a measure are written."""
        known = (own.values() for key, own in self.values.items() if key[2] == measure.name)
        return scale(measure.unit, itertools.chain(*known))

    def scale_of_differences(self, measure: Measure) -> Scale:
        """The same of its differences; those of shares are in points."""
        own = self.scale(measure)
        return replace(own, symbol="points") if measure.unit == "percent" else own

    def compared(self) -> Iterator[tuple[str, str, Pairing, Mapping[int, float], Mapping[int, float]]]:
        """Row, column, pairing, and both rows' values by seed, of every difference that is asked for, each once."""
        seen = set[tuple[str, str, str, str]]()
        for pairing in self.pairings:
            for row, column in itertools.product(pairing.rows, pairing.columns or self.columns):
                name = pairing.measure.name
                if (place := (row, column, pairing.against, name)) in seen:
                    continue
                seen.add(place)
                first, second = (self.values.get((one, column, name), {}) for one in (row, pairing.against))
                yield row, column, pairing, first, second


def lines_of_heads(outcomes: Outcomes) -> list[str]:
    """Short forms of the heads, a line for each row and column; of many runs one digest of all heads.

    The digest is the SHA-256 of the heads in the order of columns, seeds and rows, a line each. The first line counts
    the runs that have no proof, if there are any.
    """
    heads, runs = outcomes.heads, outcomes.runs()
    without = len(runs - heads.keys())
    others = [f"Without a proof: {without} of its {len(runs)} runs."] if without else []
    if not heads:
        return others
    if len(heads) > MOST_HEADS:
        digest = hashlib.sha256("".join(f"{head}\n" for head in heads.values()).encode()).hexdigest()
        return [*others, f"Proofs of its {len(heads)} runs: SHA-256 of all their heads {digest[:16]}."]
    found: dict[str, list[str]] = {}
    for (row, column, seed), head in heads.items():
        place = " / ".join(filter(None, (column, row)))
        found.setdefault(place, []).append(f"{seed}: {head[:DIGITS]}")
    return [*others, "Heads of the runs' proofs, seed: first digits."] + [
        f"{place}: {', '.join(own)}." for place, own in found.items()
    ]
