"""The page of privacy has the table that the command prints, and says no other ratios."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import sampling_epsilon

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"


def test_the_page_has_the_table() -> None:
    page, table = PAGE.read_text(encoding="utf-8"), sampling_epsilon.table()
    assert table in page
    ratios = [float(line.split("|")[-2]) for line in table.splitlines()[2:]]
    said = re.search(r"([\d.]+)\sto\s([\d.]+)\stimes\sas\slarge", page)
    assert said is not None and (float(said[1]), float(said[2])) == (min(ratios), max(ratios))
