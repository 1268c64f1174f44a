"""Marks of tables: number and checksum of the rows at a checkpoint, by which a resume finds damage.

A mark holds a table's columns, its number of rows and the SHA-256 of all of them, one after another: that of a later
round covers the rows of all earlier ones. Empty cells at the end of a row do not count, so that a column that a later
round adds changes no mark.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from raysim.storage.untrusted_files import check_types


class RowDigest:
    """Running count and SHA-256 of the rows of a table that grows."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        self.rows = 0
        self._sum = hashlib.sha256()
        self.add(lines)

    def add(self, lines: Iterable[bytes]) -> None:
        """Count lines that follow, with or without their line ends."""
        for line in lines:
            self._sum.update(bare(line) + b"\n")
            self.rows += 1

    def mark(self, columns: Sequence[str]) -> dict[str, Any]:
        """The mark that a checkpoint keeps: number of rows and checksum."""
        return {"columns": list(columns), "rows": self.rows, "sha256": self._sum.hexdigest()}


NO_ROWS = RowDigest().mark(())
"""The mark of a table that has no rows yet."""
_OF_TABLE: Mapping[str, type] = {"columns": list, "rows": int, "sha256": str}
_OF_PROOF: Mapping[str, type] = {"lines": int, "head": str}


def checked_facts(found: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a checkpoint; ValueError unless settings and marks in them have their types."""
    facts = dict(found)
    check_types(facts, {"tables": dict, "settings": dict})
    marks = facts.get("tables", {})
    check_types(marks, dict.fromkeys(marks, dict))
    for name, mark in marks.items():
        types = _OF_PROOF if "lines" in mark else _OF_TABLE
        check_types(mark, types)
        if mark.keys() != types.keys() or mark.get("rows", mark.get("lines")) < 0:
            raise ValueError(f"{name[:80]!a} has no mark")
    return facts


def bare(line: bytes) -> bytes:
    """A line without its end and its trailing empty cells."""
    return line.rstrip(b"\r\n").rstrip(b",")


def allow_cells_of(length: int) -> None:
    """Raise csv's limit to cells of this number of characters: one cell may hold the accuracies of all clients."""
    if length > csv.field_size_limit():
        csv.field_size_limit(length)


def cells(line: bytes) -> list[str]:
    """The cells of a line as texts; none if they cannot be read."""
    allow_cells_of(len(line))
    try:
        return next(csv.reader([line.decode()]), [])
    except (UnicodeDecodeError, csv.Error):
        return []


def number(line: bytes, position: int) -> int:
    """The whole number in a cell of a line; -1 if there is none."""
    found = cells(line)
    text = found[position] if position < len(found) else ""
    return int(text) if text.isdecimal() and len(text) < 19 else -1


def first_fault(lines: Sequence[bytes], columns: Sequence[str], rows: int) -> str:
    """Describe what is wrong with lines whose digest is not that of the rows that were written.

    Args:
        lines: without the header; of the rows that were written at most as many as there were.
        columns: names in the header; ``round`` is one of them.
        rows: how many were written.
    """
    keys = [columns.index(name) for name in ("round", "client") if name in columns]
    before = [0] * len(keys)
    for place, line in enumerate(lines, start=2):  # as an editor counts: the header is line 1
        found = cells(line)
        key = [number(line, position) for position in keys]
        if b"\0" in line:
            return f"line {place} holds NUL bytes"
        if len(found) != len(columns) or -1 in key:
            return f"line {place} is no whole row"
        if key <= before or key[0] > before[0] + 1:
            return f"line {place} (round {key[0]}) does not follow the line before it (round {before[0]})"
        before = key
    if len(lines) < rows:
        return f"it ends after round {before[0]}, with {len(lines)} of {rows} rows"
    return f"a row of the rounds up to {before[0]} has changed since it was written (SHA-256)"
