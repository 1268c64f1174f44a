"""The files of a published set of graphs as tables of numbers, checked."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.regular_files import open_regular
from raysim.workloads.graphs.graph_set import Floats, offsets

MAX_FILE_BYTES = 10**9
"""Upper bound of one text file, unpacked; the largest of the TUDatasets in use here takes some 30 MB."""
LARGEST_FEATURES = 2 * 10**9
"""Bytes of a set's dense features beyond which it is refused."""


@dataclass(frozen=True)
class SetFiles:
    """The files of one set, in a folder or, read without unpacking, in a zip archive."""

    name: str
    place: Path
    pattern: str
    """The name of the file that has a part of the set, {} in the place of the part; .gz: it is compressed."""
    empty_lines: bool = False
    """Whether a line without anything is a row of a table."""

    def read(self, part: str) -> bytes | None:
        """The bytes of a file; None if the set has no such file. WorkloadError if it cannot be read."""
        file = self.pattern.format(part)
        try:
            if self.place.is_dir():
                path = self.place / file
                if not path.exists():
                    return None
                with open_regular(path) as content:
                    return _limited(gzip.GzipFile(fileobj=content) if path.suffix == ".gz" else content)
            with open_regular(self.place) as packed, zipfile.ZipFile(packed) as archive:
                members = {f"{self.name}/{file}", file} & set(archive.namelist())
                return _limited(archive.open(max(members))) if members else None
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise WorkloadError(
                f"{self.name}: {file} in {self.place} cannot be read ({error}); the file may be damaged, copy or "
                "download it again"
            ) from error

    def needed(self, part: str) -> bytes:
        """The bytes of a file that a set must have."""
        content = self.read(part)
        if content is None:
            hint = "; sets for regression have no classes" if part == "graph_labels" else ""
            raise WorkloadError(
                f"{self.name}: there is no {self.pattern.format(part)} in {self.place}{hint}. Copy the set again, or "
                "choose another one"
            )
        return content

    def table(
        self, part: str, kind: type[np.generic], columns: int = 0, lines: int = -1, owner: str = ""
    ) -> NDArray[Any]:
        """All numbers of a file that a set must have [lines, columns]; an empty cell is NaN, where numbers are floats.

        It must have this many columns (0: any number) and this many lines (-1: any number), as ``owner`` says.
        """
        import pandas

        content = self.needed(part)
        table = np.zeros((0, columns or 1), kind)
        if content.strip():
            skip = not self.empty_lines
            try:
                table = pandas.read_csv(
                    io.BytesIO(content), header=None, skipinitialspace=True, skip_blank_lines=skip, dtype=kind
                ).to_numpy()
            except (ValueError, OverflowError) as error:  # pandas' own errors are ValueErrors
                reason = " ".join(str(error).split())
                raise self.damaged(f"{part} does not hold numbers in columns ({reason})") from error
        if columns and table.shape[1] != columns:
            raise self.damaged(f"{part} has {table.shape[1]} columns where {columns} are expected")
        if lines not in (-1, len(table)):
            raise self.damaged(f"{part} has {len(table)} lines, {owner} {lines}")
        return table

    def finite(self, part: str, kind: type[np.generic], lines: int, owner: str) -> NDArray[Any]:
        """``table`` of finite numbers."""
        table = self.table(part, kind, lines=lines, owner=owner)
        if not np.isfinite(table).all():
            raise self.damaged(f"{part} has values that are no finite numbers")
        return table

    def damaged(self, what: str) -> WorkloadError:
        """The error for files that do not go together."""
        return WorkloadError(f"{self.name}: {what} (in {self.place}). Copy or download the set again")


def _limited(file: IO[bytes] | gzip.GzipFile | FileIO) -> bytes:
    """All of a file, which it closes; OSError if that is more than is allowed."""
    with file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise OSError(f"unpacked it takes more than {MAX_FILE_BYTES / 1e9:g} GB")
    return content


def one_hot(
    table: NDArray[Any], widths: NDArray[Any], name: str, what: str, advice: str = "leave this set out"
) -> Floats:
    """Each column of whole numbers as a block with one 1 a row: [lines, columns] to [lines, sum of the widths].

    A width of 0 leaves the column as it is. Of what set the columns are, what they are, and what a user may do where
    the blocks would be too wide is for the error.
    """
    sizes = np.maximum(widths, 1)
    size = 4 * len(table) * float(sizes.sum())
    if size > LARGEST_FEATURES:
        raise WorkloadError(
            f"{name}: {what} would be {len(table)} lines x {sizes.sum():.0f} columns, {size / 1e9:.0f} GB; {advice}"
        )
    starts = offsets(sizes.astype(np.int64))
    found = np.zeros((len(table), int(starts[-1])), np.float32)
    for column, start, width in zip(table.T, starts[:-1].tolist(), widths.tolist(), strict=True):
        if width:
            found[np.arange(len(table)), start + column.astype(np.int64)] = 1.0
        else:
            found[:, start] = column
    return found
