"""The tables of a run's folder while it goes on: CSV that a kill or a full disk cannot tear."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.errors import DiskFullError
from raysim.writing import append_whole, write_atomically, writing

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Row = Mapping[str, Any]


class Table:
    """A CSV file in which every row is one line, so that a torn row is seen by its missing line end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] | None = None
        self._held: list[Row] = []
        """Rows for which there was no room yet."""

    def append(self, rows: Sequence[Row]) -> None:
        """Rows more; while the disk is full they are held here."""
        self._held += rows
        with suppress(DiskFullError):
            self.flush()

    def flush(self) -> None:
        """Write what is held.

        Raises:
            DiskFullError: there is still no room; the file is as it was.
        """
        if not self._held:
            return
        if self._columns is None:
            self._columns = self._header()
        new = [name for name in dict.fromkeys(name for row in self._held for name in row) if name not in self._columns]
        with writing(self.path):
            if new:
                self._widen(new)
            columns = self._columns
            append_whole(self.path, _text([row.get(name) for name in columns] for row in self._held).encode())
        self._held = []

    def truncate(self, last_round: int) -> None:
        self._columns, self._held = None, []
        columns = self._header()
        if not columns:
            self.path.unlink(missing_ok=True)
            return
        position = columns.index("round")
        kept = [line for line in self._lines() if int(next(csv.reader([line]))[position]) <= last_round]
        self._rewrite(_line(columns), kept)

    def frame(self) -> DataFrame:
        import pandas

        columns = self._header()
        if not columns:
            return pandas.DataFrame()
        text = io.StringIO(_line(columns) + "".join(self._lines()))
        frame = pandas.read_csv(text, dtype=str, keep_default_na=False)
        return pandas.DataFrame({name: frame[name] if name == "name" else _typed(frame[name]) for name in columns})

    def _header(self) -> list[str]:
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            first = file.readline()
        return next(csv.reader([first])) if first.endswith("\n") else []

    def _lines(self) -> Iterator[str]:
        """Whole lines after the header."""
        with self.path.open(encoding="utf-8", newline="\n") as file:
            next(file)
            yield from (line for line in file if line.endswith("\n"))

    def _widen(self, new: list[str]) -> None:
        old = self._columns or []
        lines = [line[:-1] + "," * len(new) + "\n" for line in self._lines()] if old else []
        self._rewrite(_line(old + new), lines)
        self._columns = old + new

    def _rewrite(self, header: str, lines: Iterable[str]) -> None:
        write_atomically(self.path, (header + "".join(lines)).encode())


def _typed(cells: Series[str]) -> Any:
    """Integers, else floats, else text. By numpy rather than ``read_csv``, whose floats may be off by the last bit."""
    missing = cells == ""
    filled = cells.mask(missing, "nan").to_numpy(dtype=str)
    for kind in (np.int64, np.float64):
        try:
            return filled.astype(kind)
        except (ValueError, OverflowError):
            continue
    return cells.mask(missing)


def _line(values: Iterable[Any]) -> str:
    return _text([values])


def _text(rows: Iterable[Iterable[Any]]) -> str:
    """One line a row."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.splitlines())
    return value.item() if isinstance(value, np.generic) else value  # Python's own type, whose repr keeps every bit
