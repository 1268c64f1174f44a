"""A table of results and the page that it stands on, before they are written as Markdown, LaTeX or CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Mark = Literal["", "best", "near"]
"""Best mean of a column, or one that is not told from it."""


@dataclass(frozen=True)
class Head:
    """The heading of a column."""

    group: str
    """Name that it shares with the columns beside it, empty if none."""
    text: str
    unit: str = ""

    @property
    def words(self) -> str:
        """Text and unit."""
        return f"{self.text} ({self.unit})" if self.unit else self.text


@dataclass(frozen=True)
class Entry:
    """The text of one cell of a table."""

    text: str = ""
    mark: Mark = ""
    count: str = ""
    """Number of runs behind the text, ``(3)``."""


@dataclass(frozen=True)
class Table:
    """A table: headings, rows, and the sentences under it."""

    name: str
    """Part of the name of its CSV file; empty for the main one."""
    corner: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]
    records: tuple[Mapping[str, object], ...]
    """The same as computed from the runs' values, one record a line of a CSV file."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """All tables of one comparison, and where they come from."""

    title: str
    tables: tuple[Table, ...]
    before: tuple[str, ...] = ()
    """Sentences over the first table."""
    runs: tuple[Mapping[str, object], ...] = ()
    """Every run with its values and the head of its proof, a line of a CSV file each."""
    origin: tuple[str, ...] = ()
    """Lines under the last table: the command that makes it again, and heads of proofs."""
