"""The figures that sum a run up, and how a page writes numbers: each in its unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from raysim import columns, units
from raysim.columns import How
from raysim.config.privacy import NEIGHBORS
from raysim.units import Unit

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Figure:
    """One number of a run."""

    name: str
    unit: Unit
    value: float


def figures(rounds: DataFrame) -> list[Figure]:
    """The figures that matter, from a run's table of rounds; what is not known is left out."""
    found = (
        Figure(_name(name, how, rounds), column.unit, _value(name, how, rounds))
        for name, column in columns.shown("tiles")
        for how in column.tiles
    )
    return [figure for figure in found if not math.isnan(figure.value)]


def _name(name: str, how: How, rounds: DataFrame) -> str:
    """The title of a figure; that of ε says which data differ."""
    about = f" ({rounds[NEIGHBORS].iloc[-1]})" if name == "epsilon" and len(rounds) and NEIGHBORS in rounds else ""
    return f"{'best ' if how == 'best' else ''}{columns.title_of(name)}{about}"


def _value(name: str, how: How, rounds: DataFrame) -> float:
    """All rounds' values of a column as one number; NaN where there is none."""
    column = columns.column_of(name)
    if column.parts:
        return sum(_value(part, how, rounds) for part in column.parts)
    values = rounds[name].dropna() if name in rounds else None
    if values is None or values.empty:
        return math.nan
    if how == "best":
        return float(values.max() if column.best == "largest" else values.min())
    return float(values.sum() if how == "total" else values.iloc[-1])


def text_of(unit: Unit, value: float) -> str:
    """One number with its unit."""
    if math.isnan(value):
        return "–"
    if unit == "percent":
        return units.percent(value, units.THIN)
    if unit == "bytes":
        return units.byte_count(value, units.THIN)
    return f"{units.number(value)}{units.THIN}s" if unit == "seconds" else units.number(value)


def cell(column: str, value: Any) -> str:
    """A value of a table of rounds or clients as text."""
    if value is None:
        return "–"
    if isinstance(value, (str, bool)):
        return str(value)
    return text_of(columns.column_of(column).unit, float(value))
