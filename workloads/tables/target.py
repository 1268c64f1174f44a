"""The column of a table that is to be predicted: its classes, or its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.partition import Integers
from workloads.tables.encoding import numbers, texts

if TYPE_CHECKING:
    import pandas

MAX_CLASSES = 1000


def classes_of(column: pandas.Series[Any], origin: str) -> tuple[tuple[str, ...], Integers]:
    """The names of the classes in a target column, sorted, and the class of each row; WorkloadError if it has none."""
    _need_all(column, origin)
    names = texts(column)
    try:
        order = sorted(set(names), key=float)
    except ValueError:
        order = sorted(set(names))
    if len(order) > MAX_CLASSES:
        raise WorkloadError(
            f"{origin}: the target {column.name!r} has {len(order)} different values, and at most {MAX_CLASSES} "
            "classes are allowed; choose another column, or put its values into classes"
        )
    codes = {name: code for code, name in enumerate(order)}
    return tuple(order), np.array([codes[name] for name in names], dtype=np.int64)


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
    mean, deviation = float(values[training].mean()), float(values[training].std())
    if not deviation:
        raise WorkloadError(
            f"{origin}: the target {column.name!r} is {mean:g} in every training row; there is nothing to learn from it"
        )
    note = (
        f"target {column.name} (numbers with mean {mean:.6g} and standard deviation {deviation:.6g}, which models "
        "predict less the mean and divided by the deviation)"
    )
    return ((values - mean) / deviation).astype(np.float32), note


def _need_all(column: pandas.Series[Any], origin: str) -> None:
    missing = np.flatnonzero(column.isna().to_numpy())
    if len(missing):
        raise WorkloadError(
            f"{origin}: the target {column.name!r} is missing in {len(missing)} of {len(column)} rows, first in row "
            f"{missing[0] + 1}; leave these rows out"
        )
