"""Screenshots of a site become contact sheets, and what a browser can tell of a page is told."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from tests.chromium import MARKS
from tests.docs import look


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
        (tmp_path / "a.html").write_text('<p style="width: 2000px">wide</p><img src="gone.png">')
        assert look.main([str(tmp_path), str(tmp_path / "out"), "--widths", "390"]) == 1
        told = (tmp_path / "out" / "faults.txt").read_text()
        assert "a.html at 390 light: sticks out: <p" in told and "gone.png" in told
