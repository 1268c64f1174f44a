"""The study files in docs/studies: every cell can be run, and finished cells were made with the settings they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from raysim.study import check_cell, read

STUDIES = sorted((Path(__file__).parents[1] / "docs" / "studies").glob("*.yaml"))


@pytest.mark.parametrize("path", STUDIES, ids=[path.stem for path in STUDIES])
def test_every_cell_of_a_study_can_be_run_and_is_what_it_says(path: Path) -> None:
    cells = list(read(path).cells())
    assert cells
    for cell in cells:
        assert cell.config().seed == cell.seed
        check_cell(cell)
