"""Reads a CSV table that another process is writing: each call gives only what is new."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

from raysim.errors import ResultsError
from raysim.storage.csv_table import TEXT_COLUMNS
from raysim.storage.folder_files import open_file
from raysim.storage.table_marks import allow_cells_of

Cell = float | str | None
KEPT = 4096
"""Bytes before the place of reading that are compared at the next look."""


class Tail:
    """A growing table of whole lines with a header.

    The writer appends, and now and then replaces the file (a new column; a resumed run that drops rows): then reading
    starts again from the top.

    Args:
        needed: columns that must hold a finite number in every row.

    Raises:
        ResultsError: from ``read``, if the file is no such table.
    """

    def __init__(self, path: Path, needed: Sequence[str] = ("round",)) -> None:
        self._path = path
        self._needed = needed
        self._given = False
        """Whether the reader of this table has rows, or had them when an error came."""
        self._begin((0, 0))

    def _begin(self, identity: tuple[int, int]) -> None:
        """Read from the top of the file with this identity, its device and inode."""
        self._file = identity
        self._offset = 0
        self._columns: list[str] = []
        self._first = self._last = b""
        """The header, and the last bytes before the offset."""

    def read(self) -> tuple[bool, list[dict[str, Any]]]:
        """Whether what was read before is void, and the new rows; numbers as numbers, empty and NaN as None.

        After an error the next call begins again at the top.
        """
        try:
            return self._read()
        except BaseException:
            self._begin((0, 0))
            raise

    def _read(self) -> tuple[bool, list[dict[str, Any]]]:
        try:
            with io.BufferedReader(open_file(self._path)) as file:
                again = not self._goes_on(file)
                if again:
                    found = os.fstat(file.fileno())
                    self._begin((found.st_dev, found.st_ino))
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            gone, self._given = self._given, False
            self._begin((0, 0))
            return gone, []
        except OSError as error:
            raise ResultsError(f"{self._path} is no table of a run: {error.strerror or error}") from error
        rows = self._rows_of(data[: data.rfind(b"\n") + 1])  # the last line may be half written
        self._given = self._offset > 0
        return again, rows

    def _goes_on(self, file: io.BufferedReader[io.FileIO]) -> bool:
        """Whether this is the file that was read, with all that was read of it.

        Its inode does not tell: of two that replace one another, the second may get that of the file before.
        """
        found = os.fstat(file.fileno())
        if (found.st_dev, found.st_ino) != self._file or found.st_size < self._offset:
            return False
        first = file.read(len(self._first))
        file.seek(self._offset - len(self._last))
        return first == self._first and file.read(len(self._last)) == self._last

    def _rows_of(self, whole: bytes) -> list[dict[str, Any]]:
        """The rows in whole lines that follow the offset."""
        allow_cells_of(len(whole))
        lines = csv.reader(whole.decode("utf-8", errors="replace").splitlines())
        try:
            if not self._columns:
                self._columns = next(lines, [])
                self._first = whole[: whole.find(b"\n") + 1]
            rows = [
                {name: cell(name, text) for name, text in zip(self._columns, line, strict=True)}
                for line in lines
                if len(line) == len(self._columns)
            ]
        except (csv.Error, ValueError) as error:
            raise ResultsError(f"{self._path} is damaged: {error}") from error
        for row in rows:
            for name in self._needed:
                if not is_finite(row.get(name)):
                    raise ResultsError(f"{self._path} is damaged: a row has no number in column {name}")
        self._offset += len(whole)
        self._last = (self._last + whole[-KEPT:])[-KEPT:]
        return rows


def cell(name: str, text: str) -> Cell:
    """The number or text in a CSV cell; None for an empty cell and for NaN.

    A loss may be infinite, and is shown so: without it the loss of an earlier round would be the last.

    Raises:
        ValueError: a column of numbers holds something else.
    """
    if name in TEXT_COLUMNS:
        return text
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} in column {name} is no number") from None
    return None if math.isnan(value) else value


def is_finite(value: Cell) -> TypeGuard[float]:
    """Whether it is a number that can be drawn, and sent: JSON has no infinity."""
    return isinstance(value, float) and math.isfinite(value)


def thinned(points: list[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most about ``most`` of the points, evenly spread, the first and the last always among them."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(place * step)] for place in range(most)]
