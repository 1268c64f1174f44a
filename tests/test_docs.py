"""Tables on the pages of docs/ are what their studies make of the rows in docs/results/. Nothing is run."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from raysim.engine.schedule import planned_intervals
from raysim.report import study_file
from raysim.report.study_file import Cell
from raysim.report.study_table import finished, place_of_table, table
from raysim.study import check_cell

DOCS = Path(__file__).resolve().parents[1] / "docs"
STUDIES = sorted((DOCS / "studies").glob("*.yaml"))
MARKER = re.compile(r"<!-- table( [^:]+)?: written by raysim\.study -->")
read = cache(study_file.read)


@cache
def cells(path: Path) -> tuple[Cell, ...]:
    return tuple(read(path).cells())


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_table_on_the_page_is_made_of_the_rows(path: Path) -> None:
    study = read(path)
    found, (before, after) = finished(study, study.measures), place_of_table(study)
    shown = study.table.read_text(encoding="utf-8").removeprefix(before).removesuffix(after).strip()
    if found or shown:  # a study that has not begun may leave its place empty
        assert shown == table(study, found), f"write it again: python -m raysim.study {path} --table-only"


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_study_describes_its_rows(path: Path) -> None:
    """What a cell's file says of its settings, and the local epochs that are in every one of its rows."""
    assert cells(path)
    for cell in cells(path):
        assert cell.config().seed == cell.seed
        check_cell(cell)  # that it can be run, too
        if cell.path.exists():
            rows = pd.read_csv(cell.path)
            assert rows["local_epochs"].tolist() == planned_intervals(cell.config()), cell.path


def test_every_row_belongs_to_a_study() -> None:
    known = {cell.path for path in STUDIES for cell in cells(path)}
    there = set((DOCS / "results").rglob("*.csv"))
    assert sorted(map(str, there - known)) == []
    assert {path.with_suffix(".csv") for path in (DOCS / "results").rglob("*.yaml")} <= there


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_table_of_a_page_has_a_study(page: Path) -> None:
    studies = [study for path in STUDIES if (study := read(path)).table == page]
    markers = [name.strip() for name in MARKER.findall(page.read_text(encoding="utf-8"))]
    assert sorted(markers) == sorted(study.name for study in studies) or (markers == [""] and len(studies) == 1)
