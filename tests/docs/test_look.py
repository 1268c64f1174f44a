"""Screenshots of a site become contact sheets, and what a browser can tell of a page is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.chromium import MARKS
from tests.docs import look

ROOT = Path(__file__).parents[2]


def test_a_long_page_is_cut_into_columns_of_sheets(tmp_path: Path) -> None:
    shot = tmp_path / "page.png"
    Image.new("RGB", (640, 6000), "white").save(shot)
    number, width, height, _ = look.WIDTHS[1280]
    assert len(list(look.columns(shot, "page", width, height))) == 4
    assert look.sheets([(shot, "page")], 1280, tmp_path / "sheets") == 2
    with Image.open(tmp_path / "sheets" / "000.png") as sheet:
        assert sheet.size == (number * (width + 4), height)


class TestInABrowser:
    """With Chromium, where it is installed."""

    pytestmark = MARKS

    def test_faults_of_a_page_are_told(self, tmp_path: Path) -> None:
        (tmp_path / "a.html").write_text(
            '<p style="width: 2000px">wide</p><img src="gone.png">'
            "<table><tr><td>a<td style='display: inline-block'>b</table>"
        )
        assert look.main([str(tmp_path), str(tmp_path / "out"), "--widths", "390"]) == 1
        told = (tmp_path / "out" / "faults.txt").read_text()
        assert "a.html at 390 light: sticks out: <p" in told and "gone.png" in told
        assert told.count("is not beside") == 2  # light and dark

    def test_numbers_of_a_row_stand_side_by_side_in_the_site(self, tmp_path: Path) -> None:
        package = pytest.importorskip("pydata_sphinx_theme", reason="the extra site is not installed")
        theme = Path(package.__file__).parent / "theme" / "pydata_sphinx_theme"
        styles = theme / "static" / "styles"
        for place in (*styles.glob("*.css"), *(ROOT / "docs" / "site" / "static").iterdir()):
            shutil.copy2(place, tmp_path)
        links = "".join(f'<link rel="stylesheet" href="{name.name}">' for name in sorted(tmp_path.glob("*.css")))
        code = "<code><span class=pre>raysim/methods/fedavg.py</span></code>"
        (tmp_path / "a.html").write_text(
            f"<html lang=en>{links}<script src=site.js></script><article class=bd-article><table class=table><tbody>"
            f"<tr><td>{code}<td>81.16 ± 0.30 (5)<td>−0.12 [−0.32, +0.07], 5 seeds</tbody></table></article>"
        )
        assert look.main([str(tmp_path), str(tmp_path / "out")]) == 0, (tmp_path / "out" / "faults.txt").read_text()
