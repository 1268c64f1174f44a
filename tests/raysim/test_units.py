"""Numbers as text: one form wherever a person reads them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import raysim
from raysim import units


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (999.7, "1 kB"), (12_345_678, "12.3 MB"), (5e13, "50 TB"), (2e15, "2e+03 TB")],
)
def test_bytes_have_three_digits_and_decimal_units(count: float, text: str) -> None:
    assert units.byte_count(count) == text


def test_percent_and_plain_numbers() -> None:
    assert units.percent(0.8125) == "81.25 %" and units.percent(0.8125, units.THIN) == "81.25\u202f%"
    assert units.number(1234567.0) == "1\u202f234\u202f567"
    assert units.number(0.72861) == "0.7286"
    assert units.number(float("nan")) == "–"
    assert [units.counted(count, "client") for count in (0, 1, 2)] == ["0 clients", "1 client", "2 clients"]


def test_no_other_module_counts_bytes_in_a_way_of_its_own() -> None:
    """The terminal once said kB where page and report said KiB of the same column."""
    folder = Path(raysim.__file__).parent
    shown = re.compile(r"""["'](KiB|GiB|kB|GB)["']""")
    files = [path for kind in ("*.py", "*.js") for path in folder.rglob(kind)]
    assert [path.name for path in files if shown.search(path.read_text(encoding="utf-8"))] == ["units.py"]


@pytest.mark.parametrize(
    ("unit", "values", "heading", "text"),
    [
        ("percent", [0.5, 0.6], "x (%)", "55.00 ± 7.07"),
        ("plain", [0.7286], "x", "0.7286"),
        ("plain", [2.5e-17], "x", "2.5e-17"),
        ("bytes", [19_240_000.0, 19_240_000.0], "x (MB)", "19.24"),
        ("bytes", [12.0], "x (B)", "12"),
        ("seconds", [1.0, 2.0], "x (s)", "1.5 ± 0.7"),
        ("seconds", [0.04], "x (s)", "0.04"),
        ("seconds", [12.34, 0.004, 0.0], "x (s)", "4.115 ± 7.123"),
        ("seconds", [0.1, 0.0], "x (s)", "0.1 ± 0.1"),
        ("seconds", [3e-9], "x (s)", "3e-09"),
        ("seconds", [1234567.0, 1e-9], "x (s)", "617283.500 ± 872970.698"),
        ("seconds", [], "x (s)", ""),
        ("count", [8.0, 8.0, 8.0], "x", "8"),
        ("plain", [], "x", ""),
        ("plain", [0.5, math.inf], "x", "inf"),
        ("plain", [math.inf, -math.inf], "x", "not finite"),
    ],
)
def test_a_column_is_written_in_one_unit(unit: units.Unit, values: list[float], heading: str, text: str) -> None:
    scale = units.scale(unit, values)
    assert scale.heading("x") == heading and scale.text(values) == text
