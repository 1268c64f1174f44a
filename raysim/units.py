"""Numbers as text for people: the same in the terminal, on pages, in tables. Imports nothing large.

Bytes are counted in decimal units (1 kB = 1000 B), as networks and disks are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Unit = Literal["percent", "plain", "bytes", "seconds", "count", "text"]
"""The unit of a number; percent: a share of one, which people read in percent."""
UNITS: tuple[Unit, ...] = ("percent", "plain", "bytes", "seconds", "count")
"""Those of numbers."""
BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")
MOST_DIGITS = 6
"""Digits behind the point of seconds; where it takes more, they are written with an exponent."""
THIN = "\u202f"
"""A narrow space that never breaks a line, between a number and its unit or its thousands."""


def byte_count(count: float, space: str = " ") -> str:
    """A number of bytes with three digits, at most 8 characters up to 999 TB: ``8.19 kB``."""
    size, unit = count, BYTE_UNITS[0]
    for unit in BYTE_UNITS:
        if size < 999.5 or unit == BYTE_UNITS[-1]:
            break
        size /= 1000
    return f"{size:.3g}{space}{unit}"


def percent(share: float, space: str = " ") -> str:
    """A share of one as percent with two decimals: ``81.25 %``."""
    return f"{100 * share:.2f}{space}%"


def number(value: float) -> str:
    """A plain number: whole ones in full with thin spaces between thousands, others with four digits; – for NaN."""
    if math.isnan(value):
        return "–"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}".replace(",", THIN)
    return f"{value:.4g}"


def time_unit(seconds: float) -> tuple[int, str]:
    """The unit in which a length of time is easy to read: its seconds, and its name."""
    units = ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
    return next((factor, name) for factor, name in units if seconds >= 3 * factor or factor == 1)


def duration(seconds: float) -> str:
    """A length of time in few signs: ``2.5 s``, ``42 s``, ``3:07``, ``1:02:03``."""
    if seconds < 60:
        return f"{seconds:.2g}{THIN}s" if seconds < 10 else f"{seconds:.0f}{THIN}s"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def counted(count: int, noun: str) -> str:
    """A number of things: ``1 client``, ``3 clients``."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def mean(values: Sequence[float]) -> float:
    """The mean of one value or more: infinite where some are, NaN where there is none (∞ − ∞, or a NaN)."""
    return statistics.fmean(values) if all(map(math.isfinite, values)) else sum(values) / len(values)


def deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation (n − 1); None with fewer than two values, or where one is not finite."""
    return statistics.stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else None


@dataclass(frozen=True)
class Scale:
    """How the values of one column of a table are written, all in the same unit."""

    factor: float
    symbol: str
    form: str
    whole: bool = False
    """Whether values are counted rather than measured, so that equal ones have no spread."""

    def text(self, values: Sequence[float]) -> str:
        """Mean ± sample standard deviation without the unit; one value alone has no spread, none is empty.

        A mean that is not finite is ``inf``, or ``not finite`` where there is none, and has no spread.
        """
        if not values:
            return ""
        scaled = [self.factor * value for value in values]
        middle, spread = mean(scaled), deviation(scaled)
        if math.isnan(middle):
            return "not finite"
        exact = self.whole and len(set(scaled)) == 1  # a number of rounds is what it is
        return f"{middle:{self.form}}{'' if spread is None or exact else f' ± {spread:{self.form}}'}"

    def heading(self, text: str) -> str:
        """A column's heading with the unit, if there is one."""
        return f"{text} ({self.symbol})" if self.symbol else text


def scale(unit: Unit, values: Iterable[float]) -> Scale:
    """The scale on which all ``values`` of a column are easy to read."""
    sizes = [abs(value) for value in values if math.isfinite(value)]
    largest = max(sizes, default=0.0)
    if unit == "percent":
        return Scale(100.0, "%", ".2f")
    if unit == "seconds":
        smallest = min(filter(None, sizes), default=1.0)
        digits = max(1, -math.floor(math.log10(smallest)))  # up to its first one that is not 0
        if largest >= 1:
            return Scale(1.0, "s", f".{min(digits, 3)}f")  # of some a few zeros, in the place of many in all
        return Scale(1.0, "s", f".{digits}f" if digits <= MOST_DIGITS else ".4g")
    if unit == "bytes":
        power = next((place for place in range(4) if largest < 999.5 * 1000**place), 4)
        return Scale(1000.0**-power, BYTE_UNITS[power], ".2f" if power else ".0f", whole=True)
    if unit == "count":
        return Scale(1.0, "", ".6g", whole=True)
    if not 0.01 <= largest < 1000:
        return Scale(1.0, "", ".4g")
    return Scale(1.0, "", ".4f")
