"""The split of a run's data as a heat map: a table of clients and classes, the more samples the stronger a cell."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from raysim import units
from raysim.report.html import Cell, Heat, Table
from raysim.storage.untrusted_files import UnreadableFileError, read_text

SHOWN = 60
"""Largest number of clients with a row; of more every second, third … is shown, so that the spread is seen."""
CLASSES = 100
"""Largest number of classes with a column, the first of them."""
_BYTES = 16 * 2**20
_CLASS = "class_"


def heat_map(folder: Path) -> tuple[Table | None, str]:
    """The table and what it shows in words; None where the folder has no ``partition.csv`` that can be read as one."""
    try:
        rows = list(csv.DictReader(read_text(folder / "partition.csv", _BYTES, own=True).splitlines()))
        return _table(rows) if rows else (None, "")
    except (OSError, UnreadableFileError, csv.Error, ValueError, TypeError, KeyError):  # a picture is no reason to fail
        return None, ""


def _table(rows: list[dict[str, str]]) -> tuple[Table, str]:
    classes = [name for name in rows[0] if name.startswith(_CLASS)]
    counted = classes[:CLASSES] or ["samples"]
    step = math.ceil(len(rows) / SHOWN)
    shown = rows[::step]
    most = max(1, *(int(row[name]) for row in shown for name in counted))
    tested = [name for name in ("test_samples", "filled") if any(int(row.get(name) or 0) for row in shown)]
    lines: list[list[Cell]] = []
    for row in shown:
        counts = [int(row[name]) for name in counted]
        number = row.get("client", "")
        line: list[Cell] = [number if row["name"] == f"client {number}" else row["name"]]
        line += [Heat(units.number(count), count / most) for count in counts]
        line += [units.number(int(row[name])) for name in (["samples"] if classes else []) + tested]
        lines.append(line)
    more = {"test_samples": "for tests", "filled": "copies"}
    headings = ["client", *(name.removeprefix(_CLASS) for name in counted), *(["all"] if classes else [])]
    words = "" if all(str(line[0]).isdecimal() for line in lines) else "client"
    return Table(headings + [more[name] for name in tested], lines, words=(words,)), _note(rows, step, len(classes))


def _note(rows: list[dict[str, str]], step: int, classes: int) -> str:
    """A sentence on what is counted, and what is left out."""
    what = " by class" if classes else ""
    note = f"Training samples of {units.counted(len(rows), 'client')}{what}"
    if step > 1:
        note += f"; one client in {step} is shown"
    if classes > CLASSES:
        note += f"; the first {CLASSES} of {classes} classes are shown"
    return note
