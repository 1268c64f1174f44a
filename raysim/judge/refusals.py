"""Reasons why two groups of runs are not compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

MISSING = "–"
"""Stands for the value of a group that has none."""


@dataclass(frozen=True)
class Refusal:
    """Something that makes a comparison unfair, or that cannot be trusted."""

    kind: str
    """A few words that name it: ``seeds``, ``rounds``, ``proof``."""
    where: str
    """Option, table or folder in which it shows."""
    a: str
    """The value of the first group."""
    b: str
    """The value of the second."""
    why: str
    """A sentence on what is wrong with that."""
    advice: str
    """A sentence on what to do."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: A {self.a}; B {self.b}. {self.why} {self.advice}"

    def plain(self) -> dict[str, str]:
        """The refusal as JSON has it."""
        return asdict(self)


def of_one(letter: str, kind: str, where: object, value: str, why: str, advice: str) -> Refusal:
    """A refusal for one group alone.

    Args:
        letter: the group's, ``A`` or ``B``.
        value: what it has; the other has none.
    """
    a, b = (value, MISSING) if letter == "A" else (MISSING, value)
    return Refusal(kind, str(where), a, b, why, advice)


def listed(values: Iterable[object], most: int = 12) -> str:
    """Values in their order with commas between, the first ones of many."""
    texts = [str(value) for value in values]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "") or "none"
