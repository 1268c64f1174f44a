"""Files of a run that are made of its tables: whether their values agree."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from raysim.workloads.files.parquet_files import read_parquet

if TYPE_CHECKING:
    from pandas import DataFrame


def agree(stored: object, value: object) -> bool:
    """Whether the summary's value is this one, but for the order in which a sum was made."""
    if isinstance(value, float):
        if math.isnan(value):
            return stored is None
        return isinstance(stored, int | float) and math.isclose(stored, value, rel_tol=1e-12)
    if isinstance(value, list):
        return isinstance(stored, list) and len(stored) == len(value) and all(map(agree, stored, value))
    if isinstance(value, dict):
        return isinstance(stored, dict) and all(agree(stored.get(name), each) for name, each in value.items())
    return stored == value


def same(path: Path, frame: DataFrame) -> bool:
    """Whether a Parquet file, of a folder without links, holds this table; one that unpacks to too much does not."""
    try:
        return bool(read_parquet(path, rows=len(frame)).to_pandas().equals(frame))
    except Exception:  # whatever a reader of a damaged file may raise
        return False
