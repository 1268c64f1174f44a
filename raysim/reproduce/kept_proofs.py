"""Heads of the proofs of a repeated study beside those that the project keeps: equal heads are equal bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raysim.comparison.outcomes import Heads
from raysim.reproduce.catalog import FOLDER, Reproduction
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

    @property
    def text(self) -> str:
        """In words."""
        if not self.equal and not self.other:
            return "proofs: none of the kept runs is at hand to be compared (they are in the project's docs/results)."
        parts = [f"{counted(self.equal, 'run')} with the bits that were kept"]
        parts += [f"{len(self.other)} with others ({', '.join(self.other[:5])})"] if self.other else []
        parts += [f"{self.unknown} of which none were kept"] if self.unknown else []
        return f"proofs: {', '.join(parts)}."

    @property
    def told(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {"equal": self.equal, "other": list(self.other), "unknown": self.unknown}


def agreement(found: Reproduction, study: Study) -> Agreement:
    """Compare a repeated study's proofs with those beside the kept rows."""
    return compared(heads(study), heads(read(FOLDER.resolve() / f"{found.name}.yaml", (FOLDER.resolve(),))))


def compared(here: Heads, kept: Heads) -> Agreement:
    """Compare the heads of runs by row, column and seed."""
    known = {key: head for key, head in here.items() if key in kept}
    other = tuple(
        f"{' / '.join(filter(None, (column, row)))} / seed {seed}"
        for (row, column, seed), head in known.items()
        if head != kept[row, column, seed]
    )
    return Agreement(len(known) - len(other), other, len(here) - len(known))
