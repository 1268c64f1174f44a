"""Columns of a table as numbers: its inputs by their training rows alone, and the one that is to be predicted."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.table_files import listed
from raysim.workloads.splits.partition import Integers

if TYPE_CHECKING:
    import pandas

MAX_CLASSES = 1000
PLAIN = (str, bool, int, float, np.generic)
"""Types of a column's objects that are texts, numbers or truth values."""
FEW_VALUES = 100
"""A categorical column may have this many values, whatever the number of rows."""
UNNAMED = "Unnamed: 0"
"""Beginning of the name of a first column that has none in the header, as pandas reads it."""
NUMBER = re.compile(r"[+-]?\d[\d.,]*(e[+-]?\d+)?", re.IGNORECASE)
"""A number as programs write it where a comma is the decimal sign, or stands between thousands."""
ROUNDING = 1e-14
"""Standard deviation, as a share of the mean, of numbers that are all one: the sum of a constant is rounded."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """The inputs of a table as numbers.

    Numeric columns come first, minus their mean and divided by their standard deviation; a missing value becomes the
    mean. A categorical column follows as the number of its value: 0 for one that the training rows do not have, or
    that is missing while they miss none; then their values, sorted, with a missing one as a value of its own.
    """

    values: NDArray[np.float32]
    """[N, numeric and categorical columns]."""
    numeric: tuple[str, ...]
    categorical: tuple[str, ...]
    sizes: tuple[int, ...]
    """The number of values of each categorical column, the unknown one included."""


def encode(table: pandas.DataFrame, training: Integers, categorical: Sequence[str], origin: str) -> Encoded:
    """The columns as numbers, by the training rows alone.

    Args:
        table: all rows of all input columns.
        training: positions of the rows that clients train on.
        categorical: columns of numbers that are categories nevertheless.
        origin: the file, for errors.

    Raises:
        WorkloadError: a column is neither numbers nor text, or holds infinity, numbers with commas or nearly as many
            texts as rows; or it has no name, as the index has that pandas writes.
    """
    from pandas.api import types

    numeric: list[str] = []
    chosen: list[str] = []
    for name in table.columns:
        column = table[name]
        plain = types.is_numeric_dtype(column) and not types.is_complex_dtype(column)
        category = isinstance(column.dtype, types.CategoricalDtype)
        if name in categorical or types.is_bool_dtype(column):
            chosen.append(name)
        elif name.startswith(UNNAMED):
            raise WorkloadError(
                f"{origin}: the first column has no name in the header, as an index that was saved with the table, and "
                f"models would learn from it; leave it out with ignore={name!r}, or give it a name"
            )
        elif plain:
            numeric.append(name)
        elif category or types.is_string_dtype(column) or (types.is_object_dtype(column) and _texts_alone(column)):
            check_points(column, origin, f"set categorical={name}")
            chosen.append(name)
        else:
            raise WorkloadError(
                f"{origin}: the column {name!r} holds {_held(column)}, which is neither numbers nor text; convert it, "
                f"or leave it out with ignore={name}"
            )
    if not numeric and not chosen:
        raise WorkloadError(f"{origin} has no column left to predict from")
    values = np.zeros((len(table), len(numeric) + len(chosen)), dtype=np.float32)
    for number, name in enumerate(numeric):
        values[:, number] = _standardized(table[name], training, origin)
    sizes = []
    for number, name in enumerate(chosen, len(numeric)):
        values[:, number], size = _numbered(table[name], training, origin)
        sizes.append(size)
    return Encoded(values, tuple(numeric), tuple(chosen), tuple(sizes))


def check_points(column: pandas.Series[Any], origin: str, otherwise: str) -> None:
    """WorkloadError for texts that are numbers, some of them with commas, and would be taken for categories.

    Args:
        column: of a table.
        origin: the file, for the error.
        otherwise: how to say that they are no numbers.
    """
    if column.dtype.kind in "biuf":
        return
    known = [str(value).strip() for value in column.dropna().unique()]
    comma = next((value for value in known if "," in value), "")
    if comma and all(map(NUMBER.fullmatch, known)):
        raise WorkloadError(
            f"{origin}: the column {column.name!r} holds numbers with commas, first {comma!r}, which would be "
            f"taken for categories; save them with points, as 2.5, and nothing between thousands, or {otherwise}"
        )


def _texts_alone(column: pandas.Series[Any]) -> bool:
    """Whether all values that are there are texts, numbers or truth values."""
    return all(isinstance(value, PLAIN) for value in column[column.notna()])


def _held(column: pandas.Series[Any]) -> str:
    """The type of a column, or of the first of its objects that is neither a number nor a text."""
    odd = (value for value in column[column.notna()] if not isinstance(value, PLAIN))
    return type(next(odd)).__name__ if column.dtype == object else str(column.dtype)


def texts(column: pandas.Series[Any]) -> list[str]:
    """Each value as text, a missing one as "missing"; a whole number is written without a fraction."""
    return ["missing" if missing else _text(value) for value, missing in zip(column, column.isna(), strict=True)]


def numbers(column: pandas.Series[Any]) -> NDArray[np.float64]:
    """A numeric column, NaN where a value is missing."""
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def classes_of(column: pandas.Series[Any], origin: str) -> tuple[tuple[str, ...], Integers]:
    """The names of the classes in a target column, sorted, and the class of each row; WorkloadError if it has none."""
    _need_all(column, origin)
    names = texts(column)
    try:
        order = sorted(set(names), key=_place)
    except ValueError:
        order = sorted(set(names))
    if len(order) > MAX_CLASSES:
        raise WorkloadError(
            f"{origin}: the target {column.name!r} has {len(order)} different values, and at most {MAX_CLASSES} "
            "classes are allowed; choose another column, or put its values into classes"
        )
    codes = {name: code for code, name in enumerate(order)}
    return tuple(order), np.array([codes[name] for name in names], dtype=np.int64)


def _place(name: str) -> tuple[bool, float, str]:
    """Where a class that is a number stands: by its value, behind all of them "nan", and equal ones by their text."""
    value = float(name)
    return math.isnan(value), 0.0 if math.isnan(value) else value, name


def has_fractions(column: pandas.Series[Any]) -> bool:
    """Whether a column holds numbers of which some are not whole."""
    if column.dtype.kind != "f":
        return False
    values = numbers(column)
    known = values[np.isfinite(values)]
    return bool((known != np.floor(known)).any())


def normalized(column: pandas.Series[Any], training: Integers, origin: str) -> tuple[NDArray[np.float32], str]:
    """The numbers of a target column [N], less their mean and divided by their standard deviation, and a note of these.

    Both are those of the training rows. WorkloadError if a value is missing or no finite number.
    """
    _need_all(column, origin)
    if column.dtype.kind not in "fiu":
        raise WorkloadError(
            f"{origin}: the target {column.name!r} holds {column.dtype}, and regression needs numbers; choose another "
            "target, or set task to classification"
        )
    values = numbers(column)
    if not np.isfinite(values).all():
        raise WorkloadError(f"{origin}: the target {column.name!r} holds infinity; correct it, or leave these rows out")
    mean, deviation = _mean_and_deviation(values[training])
    if not deviation:
        raise WorkloadError(
            f"{origin}: the target {column.name!r} is {mean:g} in every training row; there is nothing to learn from it"
        )
    note = (
        f"target {column.name} (numbers with mean {mean:.6g} and standard deviation {deviation:.6g}, which models "
        "predict less the mean and divided by the deviation)"
    )
    return ((values - mean) / deviation).astype(np.float32), note


def _standardized(column: pandas.Series[Any], training: Integers, origin: str) -> NDArray[np.float64]:
    """A numeric column by the training values that are there: mean 0 of none, deviation 1 of a constant."""
    values = numbers(column)
    if np.isinf(values).any():
        raise WorkloadError(
            f"{origin}: the column {column.name!r} holds infinity; correct it, or leave it out with "
            f"ignore={column.name}"
        )
    known = values[training]
    known = known[~np.isnan(known)]
    mean, deviation = _mean_and_deviation(known) if len(known) else (0.0, 0.0)
    return np.where(np.isnan(values), 0.0, (values - mean) / (deviation or 1.0))


def _mean_and_deviation(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard deviation; the latter 0 where values differ by no more than rounding of their magnitude."""
    mean, deviation = float(values.mean()), float(values.std())
    return mean, deviation if deviation > ROUNDING * abs(mean) else 0.0


def _numbered(column: pandas.Series[Any], training: Integers, origin: str) -> tuple[list[int], int]:
    """A categorical column, and its number of values with the unknown one."""
    found = texts(column)
    known = sorted({found[row] for row in training})
    if len(known) > max(FEW_VALUES, len(training) // 2):
        raise WorkloadError(
            f"{origin}: the column {column.name!r} has {len(known)} different texts in {len(training)} training rows "
            f"({listed(known, 3)}), more like a name than a category; leave it out with ignore={column.name}"
        )
    codes = {value: code for code, value in enumerate(known, start=1)}
    return [codes.get(value, 0) for value in found], len(known) + 1


def _text(value: object) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _need_all(column: pandas.Series[Any], origin: str) -> None:
    missing = np.flatnonzero(column.isna().to_numpy())
    if len(missing):
        raise WorkloadError(
            f"{origin}: the target {column.name!r} is missing in {len(missing)} of {len(column)} rows, first in row "
            f"{missing[0] + 1}; leave these rows out"
        )
