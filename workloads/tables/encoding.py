"""Columns of a table as numbers: which are numeric and which categorical, fitted to the training rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.partition import Integers
from workloads.table_files import listed

if TYPE_CHECKING:
    import pandas

FEW_VALUES = 100
"""A categorical column may have this many values, whatever the number of rows."""


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the rows of a table become numbers.

    Numeric columns come first, minus their mean and divided by their standard deviation; a missing value becomes the
    mean. A categorical column follows as the number of its value: 0 for one that the training rows do not have, or
    that is missing while they miss none; then their values, sorted, with a missing one as a value of its own.
    """

    numeric: tuple[str, ...]
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    categorical: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each categorical column, the unknown one included."""
        return tuple(len(known) + 1 for known in self.values)

    def encode(self, table: pandas.DataFrame) -> NDArray[np.float32]:
        """The rows as float32 [N, numeric and categorical columns]."""
        encoded = np.zeros((len(table), len(self.numeric) + len(self.categorical)), dtype=np.float32)
        for number, (name, mean, deviation) in enumerate(zip(self.numeric, self.means, self.deviations, strict=True)):
            column = numbers(table[name])
            encoded[:, number] = np.where(np.isnan(column), 0.0, (column - mean) / deviation)
        for number, (name, known) in enumerate(zip(self.categorical, self.values, strict=True), len(self.numeric)):
            codes = {value: code for code, value in enumerate(known, start=1)}
            encoded[:, number] = [codes.get(value, 0) for value in texts(table[name])]
        return encoded


def fit(table: pandas.DataFrame, training: Integers, categorical: Sequence[str], origin: str) -> Encoding:
    """The encoding of the columns by the training rows.

    Args:
        table: all rows of all input columns.
        training: positions of the rows that clients train on.
        categorical: columns of numbers that are categories nevertheless.
        origin: the file, for errors.

    Raises:
        WorkloadError: a column is neither numbers nor text, or holds infinity or nearly as many texts as rows.
    """
    from pandas.api import types

    numeric: list[str] = []
    chosen: list[str] = []
    for name in table.columns:
        column = table[name]
        plain = types.is_numeric_dtype(column) and not types.is_complex_dtype(column)
        if name in categorical or types.is_bool_dtype(column):
            chosen.append(name)
        elif plain:
            numeric.append(name)
        elif types.is_object_dtype(column) or types.is_string_dtype(column) or isinstance(column.dtype, _category()):
            chosen.append(name)
        else:
            raise WorkloadError(
                f"{origin}: the column {name!r} holds {column.dtype}, which is neither numbers nor text; convert it, "
                f"or leave it out with ignore={name}"
            )
    if not numeric and not chosen:
        raise WorkloadError(f"{origin} has no column left to predict from")
    kept = table.iloc[training]
    statistics = [_statistics(kept[name], table[name], origin) for name in numeric]
    values = tuple(_values(kept[name], origin) for name in chosen)
    means, deviations = np.array(statistics).reshape(-1, 2).T
    return Encoding(tuple(numeric), means, deviations, tuple(chosen), values)


def texts(column: pandas.Series[Any]) -> list[str]:
    """Each value as text, a missing one as "missing"; a whole number is written without a fraction."""
    return ["missing" if missing else _text(value) for value, missing in zip(column, column.isna(), strict=True)]


def numbers(column: pandas.Series[Any]) -> NDArray[np.float64]:
    """A numeric column, NaN where a value is missing."""
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _statistics(training: pandas.Series[Any], column: pandas.Series[Any], origin: str) -> tuple[float, float]:
    """(mean, standard deviation) of the training values that are there; (0, 1) of none, deviation 1 of a constant."""
    if np.isinf(numbers(column)).any():
        raise WorkloadError(
            f"{origin}: the column {column.name!r} holds infinity; correct it, or leave it out with "
            f"ignore={column.name}"
        )
    known = numbers(training)
    known = known[~np.isnan(known)]
    if not len(known):
        return 0.0, 1.0
    return float(known.mean()), float(known.std()) or 1.0


def _values(column: pandas.Series[Any], origin: str) -> tuple[str, ...]:
    found = sorted(set(texts(column)))
    if len(found) > max(FEW_VALUES, len(column) // 2):
        raise WorkloadError(
            f"{origin}: the column {column.name!r} has {len(found)} different texts in {len(column)} training rows "
            f"({listed(found, 3)}), more like a name than a category; leave it out with ignore={column.name}"
        )
    return tuple(found)


def _text(value: object) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _category() -> type:
    import pandas

    return pandas.CategoricalDtype
