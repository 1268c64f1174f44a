"""SHA-256 digests of rows of a run's tables without the columns that measure the machine."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping

from raysim.columns import is_timing
from raysim.storage.csv_table import Row, cell_text


def rows_digest(rows: Iterable[Row]) -> str:
    """The digest of rows as they are about to be written."""
    return _digest([(name, text) for name in _kept(tuple(row)) if (text := cell_text(row[name]))] for row in rows)


def cells_digest(rows: Iterable[Mapping[str, str]]) -> str:
    """The digest of rows as they were read: texts by column. Empty cells and the order of columns do not count."""
    return _digest([(name, text) for name in _kept(tuple(row)) if (text := row[name])] for row in rows)


def _digest(rows: Iterable[list[tuple[str, str]]]) -> str:
    return hashlib.sha256(json.dumps([*rows], separators=(",", ":")).encode()).hexdigest()


@functools.lru_cache(maxsize=64)
def _kept(names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that count, in order."""
    return tuple(sorted(name for name in names if not is_timing(name)))
