"""A page of tables as CSV files: runs to six digits, all else as computed from them; shares of one, bytes, seconds."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from raysim.comparison.table import Page
from raysim.storage.atomic_files import write_atomically
from raysim.storage.folder_files import without_controls


def files(content: Page) -> dict[str, str]:
    """Part of a file's name → the file's text.

    The main table has no name, others have theirs (``differences``, ``tests``), and ``runs`` has every run with the
    head of its proof.
    """
    found = {table.name: text(table.records) for table in content.tables if table.records}
    return {**found, "runs": text(content.runs)} if content.runs else found


BESIDE = ("differences", "tests", "claims", "failed", "runs")
"""Names of the tables that a page may have beside its main one."""


def write(path: Path, content: Page) -> list[Path]:
    """Write the files, ``NAME.csv`` for the main table and ``NAME-runs.csv`` and the like beside it.

    Those of an earlier page under the same name that this one does not have go, the main one too; a file that is no
    such table stays.
    """
    found = files(content)
    places = {name: path.with_name(f"{path.stem}-{name}{path.suffix}") if name else path for name in ("", *BESIDE)}
    for name, own in found.items():
        write_atomically(places[name], own.encode())
    for name in places:
        if name not in found and _is_table(places[name]):
            places[name].unlink()
    return [places[name] for name in found]


def _is_table(path: Path) -> bool:
    """Whether a file begins as the tables of a page do."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"row,"


FORMULA = re.compile(r"\s*[=+\-@]")
"""How a text begins that a spreadsheet takes for a formula, and would compute."""


def text(records: Sequence[Mapping[str, object]]) -> str:
    """Records as CSV, with a column for each name that one of them has; a text like a formula has a ' before it."""
    names = dict.fromkeys(name for record in records for name in record)
    target = io.StringIO()
    writer = csv.DictWriter(target, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in record.items()} for record in records)
    return target.getvalue()


def _plain(value: object) -> object:
    if not isinstance(value, str):
        return value
    value = without_controls(value)  # a reader takes a lone carriage return for the end of a row
    return f"'{value}" if FORMULA.match(value) else value
