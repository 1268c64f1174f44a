"""The tables of a run's folder while it goes on: CSV that a kill or a full disk cannot tear."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim import columns
from raysim.errors import DamagedError, DiskFullError, ResultsError
from raysim.storage.atomic_files import append_whole, write_atomically, writing
from raysim.storage.folder_files import LinkError, is_there, open_file
from raysim.storage.table_marks import RowDigest, bare, cells, first_fault, number

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Row = Mapping[str, Any]
TEXT_COLUMNS = columns.texts()
"""Columns of text; all other columns hold numbers."""
MOST_COLUMNS = 4096
"""More columns than a run can have; a page or a plot of a foreign table would take hours with a million of them."""


class Table:
    """A CSV file in which every row is one line, so that a torn row is seen by its missing line end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = []
        self._digest: RowDigest | None = None
        """Digest of the rows in the file; None, with no columns, until the file has been read."""
        self._held: list[Row] = []
        """Rows for which there was no room yet."""

    def append(self, rows: Sequence[Row]) -> None:
        """Append rows; while the disk is full they wait in memory."""
        self._held += rows
        with suppress(DiskFullError):
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait in memory.

        Raises:
            DiskFullError: there is still no room; the file is as it was.
        """
        if not self._held:
            return
        digest = self._read()
        new = [name for name in dict.fromkeys(name for row in self._held for name in row) if name not in self._columns]
        with writing(self.path):
            if new:
                self._widen(new)
            lines = [_line(row.get(name) for name in self._columns).encode() for row in self._held]
            append_whole(self.path, b"".join(lines))
        digest.add(lines)
        self._held = []

    def mark(self) -> dict[str, Any]:
        """Sync all rows to the disk and return their mark, for a checkpoint (:mod:`raysim.storage.table_marks`).

        Raises:
            DiskFullError: there is no room.
        """
        self.flush()
        digest = self._read()
        if self._columns:
            with writing(self.path), _reading(self.path) as file:
                os.fsync(file.fileno())
        return digest.mark(self._columns)

    def check(self, mark: Mapping[str, Any]) -> None:
        """Compare the file with a mark. What comes after the marked rows may be anything: a kill leaves it.

        Raises:
            DamagedError: the rows are not those that were written.
        """
        columns, rows = mark["columns"], mark["rows"]
        if not rows:
            return
        try:
            with _reading(self.path) as file:
                header, *lines = islice(file, rows + 1)
        except OSError as error:
            raise DamagedError(f"damaged: {self.path}: {error.strerror or error}") from error
        except ValueError as error:
            raise DamagedError(f"damaged: {self.path}: it is empty") from error
        found = cells(header) if header.endswith(b"\n") else []
        if found[: len(columns)] != columns:
            raise DamagedError(f"damaged: {self.path}: its first line does not name the columns that were written")
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        if RowDigest(lines).mark(columns) != mark:
            raise DamagedError(f"damaged: {self.path}: {first_fault(lines, found, rows)}")

    def cut(self, mark: Mapping[str, Any]) -> None:
        """Cut the file, which agrees with a mark, to the rows that it had then."""
        columns = mark["columns"]
        lines = [bare(line) for line in islice(self._lines(), mark["rows"])] if mark["rows"] else []
        self._replace(columns, [line + b"," * (len(columns) - len(cells(line))) + b"\n" for line in lines])

    def truncate(self, last_round: int) -> None:
        """Drop the rows after a round and lines that cannot be read: of a table of which checkpoints keep no mark."""
        columns = self._header()
        position = columns.index("round") if "round" in columns else len(columns)
        lines = self._lines() if columns else ()
        self._replace(columns, [line for line in lines if 0 <= number(line, position) <= last_round])

    def whole_rows(self) -> int:
        """Number of whole lines after the header, readable or not."""
        return sum(1 for _ in self._lines()) if is_there(self.path) else 0

    def frame(self) -> DataFrame:
        """All whole rows as a pandas frame.

        Raises:
            ResultsError: it is no table of a run, or a cell of a column of numbers holds something else.
        """
        import pandas

        if not is_there(self.path):
            return pandas.DataFrame()
        try:
            columns = self._header()
        except LinkError as error:
            raise ResultsError(f"{self.path} is no table of a run: {error.strerror}") from error
        except OSError as error:
            raise ResultsError(f"{self.path} cannot be read: {error.strerror or error}") from error
        if not columns and self.path.stat().st_size == 0:
            return pandas.DataFrame()
        if "round" not in columns:
            raise ResultsError(f"{self.path} is damaged: line 1 names no column round")
        if len(columns) > MOST_COLUMNS:
            raise ResultsError(f"{self.path} is damaged: line 1 names {len(columns):,} columns")
        lines = list(self._lines())
        for place, line in enumerate(lines, start=2):
            found = len(cells(line)) if b'"' in line else line.count(b",") + 1
            if found != len(columns):
                raise ResultsError(f"{self.path} is damaged: line {place} has {found} cells, line 1 {len(columns)}")
        try:
            text = io.StringIO(b"".join(lines).decode())
            frame = pandas.read_csv(text, header=None, names=columns, dtype=str, keep_default_na=False, index_col=False)
        except ValueError as error:  # also pandas' own errors, and text that is not UTF-8
            raise ResultsError(f"{self.path} is damaged: {' '.join(str(error).split())}") from error
        return pandas.DataFrame({name: self._typed(name, frame[name]) for name in columns})

    def _typed(self, name: str, cells: Series[str]) -> Any:
        """Texts as they are, else integers, else floats: by numpy, as floats of ``read_csv`` may be off by a bit."""
        if name in TEXT_COLUMNS:
            return cells
        texts = cells.to_numpy(dtype=str)
        filled = np.where(texts == "", "nan", texts)
        with suppress(ValueError, OverflowError):
            return filled.astype(np.int64)
        try:
            return filled.astype(np.float64)
        except ValueError:
            for line, cell in enumerate(cells, start=2):
                with suppress(ValueError):
                    float(cell or "nan")
                    continue
                raise ResultsError(
                    f"{self.path} is damaged: line {line}, column {name}: {cell[:40]!r} is no number"
                ) from None
            raise

    def _read(self) -> RowDigest:
        """The digest of the rows in the file; reads what is there the first time."""
        if self._digest is None:
            self._columns = self._header()
            self._digest = RowDigest(self._lines() if self._columns else ())
        return self._digest

    def _header(self) -> list[str]:
        if not is_there(self.path):
            return []
        with _reading(self.path) as file:
            first = file.readline()
        return cells(first) if first.endswith(b"\n") else []

    def _lines(self) -> Iterator[bytes]:
        """Whole lines after the header."""
        with _reading(self.path) as file:
            yield from (line for line in islice(file, 1, None) if line.endswith(b"\n"))

    def _widen(self, new: list[str]) -> None:
        lines = [line[:-1] + b"," * len(new) + b"\n" for line in self._lines()] if self._columns else []
        self._rewrite(self._columns + new, lines)
        self._columns = self._columns + new

    def _replace(self, columns: list[str], lines: Sequence[bytes]) -> None:
        """Hold these rows and no others; without any there is no file."""
        self._columns, self._digest, self._held = [], None, []
        if lines:
            self._rewrite(columns, lines)
        else:
            self.path.unlink(missing_ok=True)

    def _rewrite(self, columns: list[str], lines: Iterable[bytes]) -> None:
        write_atomically(self.path, _line(columns).encode() + b"".join(lines))


def _reading(path: Path) -> BufferedReader:
    return io.BufferedReader(open_file(path))


def _line(values: Iterable[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow([_cell(value) for value in values])
    return buffer.getvalue()


def cell_text(value: Any) -> str:
    """The text of a value's cell as it is read again; empty for None."""
    if type(value) is float or type(value) is int:
        return repr(value)
    cell = _cell(value)
    return "" if cell is None else str(cell)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.splitlines())
    return value.item() if isinstance(value, np.generic) else value  # Python's own type, whose repr keeps every bit
