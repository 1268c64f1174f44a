"""Heads of the proofs of a repeated study beside those that the project keeps: equal heads are equal bits.

A processor of another kind rounds otherwise (docs/trust.md), and the tables may be the same all the same: where a head
differs, they are compared as they are printed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysim.comparison.outcomes import Heads
from raysim.reproduce.catalog import FOLDER, Reproduction
from raysim.studies.places import cell_table
from raysim.studies.study_file import Study, read
from raysim.studies.tables import heads
from raysim.units import counted


@dataclass(frozen=True)
class Agreement:
    """How many runs have the proof that was kept."""

    equal: int
    other: tuple[str, ...]
    """Names of the runs whose head differs."""
    unknown: int
    """Runs of which no head was kept."""
    same_digits: int = 0
    """How many of ``other`` have the numbers that were kept, to the last digit that is printed."""

    @property
    def text(self) -> str:
        """In words."""
        if not self.equal and not self.other:
            return "proofs: none of the kept runs is at hand to be compared (they are in the project's docs/results)."
        parts = [f"{counted(self.equal, 'run')} with the bits that were kept"]
        parts += [f"{len(self.other)} with others ({', '.join(self.other[:5])})"] if self.other else []
        if self.same_digits:
            parts[-1] += f", {self.same_digits} of them with the same numbers to the last printed digit"
        parts += [f"{self.unknown} of which none were kept"] if self.unknown else []
        return f"proofs: {', '.join(parts)}."

    @property
    def told(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "equal": self.equal,
            "other": list(self.other),
            "same_digits": self.same_digits,
            "unknown": self.unknown,
        }


def agreement(found: Reproduction, study: Study) -> Agreement:
    """Compare a repeated study's proofs with those beside the kept rows."""
    kept = read(FOLDER.resolve() / f"{found.name}.yaml", (FOLDER.resolve(),))
    before, now = ({(cell.row, cell.column, cell.seed): cell.path for cell in one.cells()} for one in (kept, study))
    same = {key for key, path in now.items() if key in before and equal_numbers(path, before[key])}
    return compared(heads(study), heads(kept), same)


def compared(here: Heads, kept: Heads, same: Collection[tuple[str, str, int]] = ()) -> Agreement:
    """Compare the heads of runs by row, column and seed; ``same``: those whose tables agree as they are printed."""
    known = {key: head for key, head in here.items() if key in kept}
    other = {
        key: f"{' / '.join(filter(None, (key[1], key[0])))} / seed {key[2]}"
        for key, head in known.items()
        if head != kept[key]
    }
    equal, unknown = len(known) - len(other), len(here) - len(known)
    return Agreement(equal, tuple(other.values()), unknown, len(other.keys() & set(same)))


def equal_numbers(here: Path, kept: Path) -> bool:
    """Whether two tables of rounds have equally many rows and, in the columns that both have, the same values."""
    if not (here.exists() and kept.exists()):
        return False
    first, second = cell_table(here), cell_table(kept)
    shared = first.columns.intersection(second.columns)
    return bool(len(shared)) and first[shared].equals(second[shared])
