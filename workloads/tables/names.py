"""Names of clients, classes and categories in a table: as its files print them where numbers would merge some."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.table_files import is_parquet, read_table
from raysim.workloads.naming import check_names
from raysim.workloads.tables.encoding import texts

if TYPE_CHECKING:
    import pandas

_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def sites_of(table: pandas.DataFrame, client_column: str, path: Path) -> NDArray[np.str_] | None:
    """The client of every row, None where no column names it. WorkloadError if one is missing."""
    if not client_column:
        return None
    missing = np.flatnonzero(table[client_column].isna().to_numpy())
    if len(missing):
        raise WorkloadError(f"{path}: the client_column {client_column!r} is missing in row {missing[0] + 1}")
    found = np.char.strip(table[client_column].to_numpy().astype(np.str_))
    check_names(np.unique(found).tolist(), f"{path}: client_column {client_column!r}")
    return found


def with_printed_names(
    table: pandas.DataFrame,
    parts: Sequence[tuple[Path, pandas.DataFrame]],
    columns: Sequence[str],
    names: Sequence[str],
) -> pandas.DataFrame:
    """The table with columns of names as its CSV files print them, where numbers would make one name of two.

    ``1.1`` and ``1.10`` are one number, and so are ``1`` and ``01``. A column of which no two names are merged stays as
    it is, and so do one of truth values and one that is numbers in a Parquet file.

    Args:
        table: the rows of all parts.
        parts: each file and what was read from it.
        columns: names of all columns, of CSV files without a header.
        names: the columns that hold names; those that a part lacks stay as they are.
    """
    import pandas

    there = [name for name in dict.fromkeys(names) if all(name in part.columns for _, part in parts)]
    numbers = {name: {is_parquet(path) for path, part in parts if _is_number(part[name])} for name in there}
    wanted = [name for name, kinds in numbers.items() if kinds == {False}]
    if not wanted:
        return table
    prints = (
        part if is_parquet(path) else read_table(path, columns, as_text=True, only=wanted) for path, part in parts
    )
    printed = pandas.concat([part[wanted] for part in prints], ignore_index=True)
    return table.assign(**{name: _unmerged(table[name], printed[name]) for name in wanted})


def _is_number(column: pandas.Series[Any]) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return is_numeric_dtype(column) and not is_bool_dtype(column)


def _unmerged(column: pandas.Series[Any], printed: pandas.Series[Any]) -> pandas.Series[Any]:
    """The column if each of its names is printed in one way and no other is printed so, else what is printed."""
    import pandas

    pairs = pandas.DataFrame({"name": column, "printed": printed})[column.notna()].drop_duplicates()
    found, written = ([*map(_plain, texts(pairs[part]))] for part in pairs.columns)
    alike = len({*found}) == len({*written}) == len({*zip(found, written, strict=True)})
    return column if alike else printed.where(column.notna())


def _plain(text: str) -> str:
    """A name without a fraction of zeros or the sign of zero: programs that write tables print whole numbers so."""
    whole = _WHOLE.fullmatch(text)
    text = whole[1] if whole else text
    return "0" if text == "-0" else text
