"""The report and the comparison in a headless Chromium, on a desk and on a phone, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import raysim
from raysim.report import compare, run_page
from tests.chromium import MARKS
from tests.chromium import browser as browser
from tests.raysim.report.pages import make

pytestmark = MARKS
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
SMALLEST_TEXT = """
Math.min(...[...document.querySelectorAll('svg text')].filter((text) => text.checkVisibility())
  .map((text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().d || Infinity))
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make(tmp_path_factory.mktemp("report") / "run", rounds=6, more="training: {learning_rate: 0.3}\n")
    header = "client,name,samples,test_samples," + ",".join(f"class_{number}" for number in range(10)) + ",filled"
    rows = [f"{client},client {client},45,9,{','.join(map(str, range(10)))},0" for client in range(12)]
    (folder / "partition.csv").write_text("\n".join([header, *rows]) + "\n")
    return run_page.page(folder)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("comparison")
    runs = [
        make(root / name, more=f"training: {{batch_size: {size}}}\nseed: 0\n", lift=lift)
        for name, size, lift in (("a", 128, -0.1), ("b", 16, 0.1), ("c", 64, 0.0))
    ]
    return compare.write_page(raysim.compare(runs, against="batch_size 64"), root / "compare.html")


def shown(browser: Any, path: Path, **options: Any) -> tuple[Any, list[str]]:
    """The page, opened, and what its console says."""
    opened, said = browser.new_page(**options), list[str]()
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto(path.as_uri())
    return opened, said


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", ["report", "comparison"])
def test_nothing_is_wider_than_the_screen_and_every_text_is_readable(
    browser: Any, page: str, width: int, scheme: str, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(page)
    opened, said = shown(browser, path, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    assert 10 <= opened.evaluate(SMALLEST_TEXT) < 20
    forms = opened.evaluate(
        "['wide', 'narrow'].map((form) => document.querySelector(`.${form} svg`).checkVisibility())"
    )
    assert forms == ([True, False] if width == 1280 else [False, True])
    ink = opened.evaluate("getComputedStyle(document.querySelector('svg text')).fill")
    assert ink == ("rgb(31, 35, 40)" if scheme == "light" else "rgb(230, 230, 230)")
    assert said == []
    opened.close()


def test_the_partition_is_in_the_colors_of_the_page(browser: Any, report: Path) -> None:
    grounds = {}
    for scheme in SCHEMES:
        opened, _ = shown(browser, report, color_scheme=scheme)
        cells = opened.locator(".partition .heat")
        assert cells.count() == 120
        pick = "cells => cells.slice(0, 10).map((cell) => getComputedStyle(cell).backgroundColor)"
        grounds[scheme] = cells.evaluate_all(pick)
        opened.close()
    assert len(set(grounds["light"])) == 10 and not set(grounds["light"][1:]) & set(grounds["dark"][1:])


def test_on_a_phone_the_first_column_stays_and_a_hint_says_that_a_table_scrolls(browser: Any, report: Path) -> None:
    opened, _ = shown(browser, report, viewport={"width": 390, "height": 800})
    rounds = opened.locator("section", has=opened.get_by_role("heading", name="Rounds"))
    assert rounds.locator(".hint").is_visible()
    box = rounds.locator(".scroll")
    before = box.locator("tbody td").first.bounding_box()["x"]
    box.evaluate("box => { box.scrollLeft = 200; }")
    assert box.evaluate("box => box.scrollLeft") > 100
    assert box.locator("tbody td").first.bounding_box()["x"] == before
    opened.close()


def test_a_click_on_a_heading_sorts_the_comparison(browser: Any, comparison: Path) -> None:
    opened, said = shown(browser, comparison)
    table = opened.locator("table").first

    def column() -> list[str]:
        return [text.strip() for text in table.locator("tbody td:first-child").all_inner_texts()]

    assert column() == ["128", "16", "64"]
    heading = table.get_by_role("button", name="training.batch_size")
    heading.click()
    assert column() == ["128", "64", "16"]
    heading.click()
    assert column() == ["16", "64", "128"]
    table.get_by_role("button", name="accuracy (%)", exact=True).click()
    assert column() == ["16", "64", "128"]  # the best first
    assert table.locator("th[aria-sort]").count() == 1
    differences = opened.locator("table", has_text="difference").first
    for _ in ("downward", "upward"):
        differences.get_by_role("button", name="accuracy (points)").click()
    texts = [text.split()[0] for text in differences.locator("tbody td:nth-child(2)").all_inner_texts()]
    values = [float(text.replace("−", "-").rstrip(",")) for text in texts]
    assert values == sorted(values) and min(values) < 0 < max(values)
    assert said == []
    opened.close()


def test_without_a_script_the_comparison_is_a_plain_table(browser: Any, comparison: Path) -> None:
    opened, _ = shown(browser, comparison, java_script_enabled=False)
    assert opened.locator("th button").count() == 0 and opened.locator("tbody tr").count() == 3 + 2 + 3
    opened.close()


def test_the_command_is_selected_as_a_whole(browser: Any, report: Path) -> None:
    opened, _ = shown(browser, report)
    opened.get_by_text("The command that repeats it").click()
    opened.locator(".command").click()
    assert opened.evaluate("getSelection().toString()").strip().startswith("python -m raysim.launch --method fedavg")
    opened.close()
