"""SHA-256 digests of rows of a run's tables without the columns that measure the machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from raysim.columns import is_timing
from raysim.storage.csv_table import Row, row_cells


def rows_digest(rows: Iterable[Row]) -> str:
    """The digest of rows as they are about to be written."""
    return cells_digest(map(row_cells, rows))


def cells_digest(rows: Iterable[Mapping[str, str]]) -> str:
    """The digest of rows as they were read: texts by column. Empty cells and the order of columns do not count."""
    kept = [sorted((name, text) for name, text in row.items() if text and not is_timing(name)) for row in rows]
    return hashlib.sha256(json.dumps(kept, separators=(",", ":")).encode()).hexdigest()
