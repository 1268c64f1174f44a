"""Tables in CSV and Parquet files."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.parquet_files import read_parquet, with_plain_numbers
from raysim.workloads.files.regular_files import open_unpacked

if TYPE_CHECKING:
    import pandas

MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None")
"""Texts that stand for a value that is not known."""


def is_parquet(path: Path) -> bool:
    """Whether a table is read as a Parquet file, and else as a CSV file."""
    return path.suffix.lower() in (".parquet", ".pq")


def read_table(
    path: Path, columns: Sequence[str] = (), as_text: bool = False, only: Sequence[str] = (), skip: int = 0
) -> pandas.DataFrame:
    """The table in a file that ends in .parquet, else in a CSV file; WorkloadError if it cannot be read or is empty.

    Args:
        path: the file. The separator of a CSV file, a comma, semicolon or tab, is found in its first line.
        columns: names of the columns, of a CSV file without a header.
        as_text: every value is text, and an empty one is empty text; else numbers are numbers, and ``MISSING`` is NaN.
        only: columns of a CSV file to read; all if there are none.
        skip: lines of a CSV file before its table.
    """
    import pandas

    if not path.is_file():
        raise WorkloadError(f"no file {path}; give the path of a CSV or Parquet file")
    if columns and is_parquet(path):
        raise only_of_csv(path)
    try:
        if is_parquet(path):
            table: pandas.DataFrame = with_plain_numbers(read_parquet(path)).to_pandas()
            names = {name for name in table.index.names if name is not None}  # a column too, unless it is one
            table = table.reset_index(drop=not names or bool(names & {*table.columns}))
            table = table.fillna("").astype(str) if as_text else table
        else:
            first = _first_line(path, skip)
            separator = _separator(first, len(columns))
            form: dict[str, Any] = {
                "sep": separator,
                "skiprows": skip,
                "skipinitialspace": True,
                "keep_default_na": False,
                "encoding": "utf-8-sig",
                "index_col": False,
            }
            if columns:
                _check_names(path, columns, form)
            else:
                _check_distinct(_values(first, separator))
            with open_unpacked(path) as text, warnings.catch_warnings():
                warnings.simplefilter("error", pandas.errors.ParserWarning)  # values that would be left out
                table = pandas.read_csv(
                    text,
                    header=None if columns else "infer",
                    names=list(columns) or None,
                    usecols=(lambda name: str(name).strip() in only) if only else None,
                    dtype=str if as_text else None,
                    na_values=[] if as_text else list(MISSING),
                    low_memory=False,
                    **form,
                )
            if separator == "\t":
                _check_quotes(table)
        _check_distinct(table.columns)
    except WorkloadError:
        raise
    except pandas.errors.ParserWarning as error:
        raise WorkloadError(
            f"{path} has a row with more values than columns; put values that hold the separator {separator!r} into "
            'double quotes ("Well, yes")'
        ) from error
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{path} cannot be read as a table in UTF-8 ({error}); save it as CSV in UTF-8") from error
    except Exception as error:  # both readers raise many types for damaged files, and document no closed set
        reason = " ".join(str(error).split()) or type(error).__name__
        raise WorkloadError(f"{path} cannot be read as a table ({reason}); copy it again or correct it") from error
    if not len(table) or not len(table.columns):
        raise WorkloadError(f"{path} has no rows; a table needs a header and at least one row")
    table.columns = [str(name).strip() for name in table.columns]
    return table


def _check_names(path: Path, columns: Sequence[str], form: Mapping[str, Any]) -> None:
    """WorkloadError for names of columns that a header has too, or that are not as many as the first row's values."""
    import pandas

    with open_unpacked(path) as text:
        row = pandas.read_csv(text, header=None, nrows=1, dtype=str, **form)
    values = [str(value).strip() for value in row.iloc[0]]
    if {value.lower() for value in values} == {name.lower() for name in columns}:
        raise WorkloadError(f"{path} has a header, the names that columns has ({listed(values)}); leave columns out")
    if len(values) == len(columns) + 1 and row.iloc[0].isna().iloc[-1]:
        return  # lines end in a separator
    if len(values) != len(columns):
        raise WorkloadError(
            f"{path}: columns has {len(columns)} names ({listed(columns)}), and the first row has {len(values)} values "
            f"({listed(values)}); give one name for each"
        )


def only_of_csv(path: Path) -> WorkloadError:
    """The error for names of columns where these are there already, or there are none."""
    return WorkloadError(f"columns has the names of a CSV file without a header, and {path} is none; leave columns out")


def _first_line(path: Path, skip: int) -> str:
    with open_unpacked(path) as file:
        lines = (file.readline(100_000).decode("utf-8-sig", errors="replace") for _ in range(100))
        return next((line.strip("\r\n") for line in islice(lines, skip, None) if line.strip()), "")


def _separator(line: str, columns: int) -> str:
    """The separator of a line's values: the sign that makes ``columns`` values if these are known, else most."""
    return max(",;\t", key=lambda sign: (bool(columns) and len(_values(line, sign)) == columns, line.count(sign)))


def _values(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])


def _check_quotes(table: pandas.DataFrame) -> None:
    """ValueError for a value of tab-separated text that holds a tab and a line end, and so most likely other rows.

    Files with tabs are often written without quotation, and a value that begins with a lone quotation mark then goes on
    to the next one.
    """
    for name in table.select_dtypes(exclude="number"):
        for number, value in enumerate(table[name], start=1):
            if isinstance(value, str) and "\n" in value and "\t" in value:
                raise ValueError(
                    f"row {number}: a value in column {name!r} begins with a quotation mark and goes on over tabs and "
                    "line ends to the next one; if it ends too late, write it in quotes, with its own marks doubled "
                    '("""Well"" he said"); if it is one value, write spaces in the place of its tabs'
                )


def _check_distinct(names: Iterable[object]) -> None:
    """ValueError for the first name that two columns have, but for spaces around it."""
    seen: set[str] = set()
    for name in (str(name).strip() for name in names):
        if name in seen:
            raise ValueError(f"two columns are called {name!r}; give each a name of its own")
        seen.add(name)


def need_columns(path: Path, table: pandas.DataFrame, names: Sequence[str]) -> None:
    """WorkloadError for the first of these columns that the table does not have."""
    for name in names:
        if name not in table.columns:
            raise WorkloadError(f"{path} has no column {name!r}; its columns are: {listed(table.columns)}")


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names in a sentence, at most 20."""
    texts = [*map(str, names)]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")
