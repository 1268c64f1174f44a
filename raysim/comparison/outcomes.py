"""Measured values of runs, each at a row, a column and a seed: all that tables of a comparison are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from raysim.results.measures import Measure

Values = Mapping[tuple[str, str, str], Mapping[int, float]]
"""(row, column, measure) → seed → its value in the finished run."""
Heads = Mapping[tuple[str, str, int], str]
"""(row, column, seed) → head of the run's proof."""
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


def lines_of_heads(heads: Heads) -> list[str]:
    """Short forms of the heads, a line for each row and column; of many runs one digest of all heads.

    The digest is the SHA-256 of the heads in the order of rows, columns and seeds, a line each.
    """
    if not heads:
        return []
    if len(heads) > MOST_HEADS:
        digest = hashlib.sha256("".join(f"{head}\n" for head in heads.values()).encode()).hexdigest()
        return [f"Proofs of its {len(heads)} runs: SHA-256 of all their heads {digest[:16]}."]
    found: dict[str, list[str]] = {}
    for (row, column, seed), head in heads.items():
        place = " / ".join(filter(None, (column, row)))
        found.setdefault(place, []).append(f"{seed}: {head[:DIGITS]}")
    return ["Heads of the runs' proofs, seed: first digits."] + [
        f"{place}: {', '.join(own)}." for place, own in found.items()
    ]
