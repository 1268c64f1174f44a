"""All pages of a built site in Chromium: screenshots on contact sheets, what sticks out, and axe's findings.

``python -m tests.docs.look SITE OUT [--axe axe.min.js] [--only PART ...]`` opens each page of the folder SITE 1280 and
390 pixels wide, light and dark. ``OUT/faults.txt`` has what a browser can tell by itself: pages that are wider than the
window, cells of a row that stand one below another, pictures that are not there, errors of scripts, addresses outside
the site, and violations that axe-core (npm) finds. ``OUT/sheets`` is for the eye: several pages side by side, long ones
cut into columns. Exit code 1: a fault.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from tests.chromium import CHROMIUM

WIDTHS = {1280: (3, 360, 1080, 0.5), 390: (6, 180, 1080, 1.0)}
"""Width of the window → columns of a sheet, their width and height in pixels, and the scale of a screenshot."""
SCHEMES = ("light", "dark")
TALLEST = 12000
"""Pixels of a page's height that a screenshot has at most."""
STICKING_OUT = """() => {
    const wide = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= wide) return [];
    const clipped = (element) => {
        for (let e = element.parentElement; e; e = e.parentElement)
            if (getComputedStyle(e).overflowX !== "visible" && e !== document.documentElement && e !== document.body)
                return true;
        return false;
    };
    return [...document.body.querySelectorAll("*")]
        .filter((e) => e.getBoundingClientRect().right > wide + 1 && !clipped(e)).slice(0, 3)
        .map((e) => e.outerHTML.slice(0, 120));
}"""
STACKED = """() => [...document.querySelectorAll("td, th")]
    .filter((cell) => getComputedStyle(cell.parentElement).display === "table-row"
        && !["table-cell", "none"].includes(getComputedStyle(cell).display))
    .slice(0, 3).map((cell) => cell.outerHTML.slice(0, 120))"""
MISSING = "() => [...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
    (v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 150)).join(" | ") + ` (${v.nodes.length})`)"""


def look(page: Any, address: Path, axe: str | None) -> Iterator[str]:
    """Open one page and tell its faults."""
    told: list[str] = []
    page.on("pageerror", lambda error: told.append(f"error of a script: {error}"))
    page.on("request", lambda asked: told.append(f"fetches {asked.url}") if asked.url.startswith("http") else None)
    page.goto(address.as_uri(), wait_until="load")
    page.evaluate("document.querySelectorAll('img[loading=lazy]').forEach((i) => { i.loading = 'eager'; })")
    page.wait_for_function("[...document.images].every((i) => i.complete)")
    yield from told
    yield from (f"sticks out: {element}" for element in page.evaluate(STICKING_OUT))
    yield from (f"is not beside the other cells of its row: {cell}" for cell in page.evaluate(STACKED))
    yield from (f"picture is not there: {source}" for source in page.evaluate(MISSING))
    if axe is not None:
        page.evaluate(axe)
        yield from (f"axe {violation}" for violation in page.evaluate(AXE))


def columns(shot: Path, name: str, width: int, height: int) -> Iterator[Image.Image]:
    """A screenshot, made smaller and cut into columns with the page's name on top."""
    with Image.open(shot) as opened:
        small = opened.convert("RGB").resize((width, max(1, opened.height * width // opened.width)))
    for number, top in enumerate(range(0, small.height, height - 14)):
        column = Image.new("RGB", (width, height), "#808080")
        column.paste(small.crop((0, top, width, min(small.height, top + height - 14))), (0, 14))
        ImageDraw.Draw(column).text((2, 1), f"{name} {number + 1}", fill="white")
        yield column


def sheets(shots: Sequence[tuple[Path, str]], window: int, out: Path) -> int:
    """Write the contact sheets of screenshots with their names; returns how many there are."""
    number, width, height, _ = WIDTHS[window]
    pieces = [column for shot, name in shots for column in columns(shot, name, width, height)]
    out.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(pieces), number):
        sheet = Image.new("RGB", (number * (width + 4), height), "#404040")
        for place, column in enumerate(pieces[first : first + number]):
            sheet.paste(column, (place * (width + 4), 0))
        sheet.save(out / f"{first // number:03}.png")
    return -(-len(pieces) // number)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.docs.look", description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--axe", type=Path, help="axe.min.js of npm's axe-core")
    parser.add_argument("--widths", nargs="*", type=int, default=list(WIDTHS))
    parser.add_argument("--only", nargs="*", default=[""], help="pages whose names contain one of these")
    asked = parser.parse_args(arguments)
    from playwright.sync_api import sync_playwright

    axe = asked.axe.read_text(encoding="utf-8") if asked.axe else None
    names = sorted(path.relative_to(asked.site).as_posix() for path in asked.site.rglob("*.html"))
    names = [name for name in names if not name.startswith("_static/") and any(part in name for part in asked.only)]
    found: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in asked.widths:
            for scheme in SCHEMES:
                folder, shots = asked.out / f"{width}-{scheme}", []
                folder.mkdir(parents=True, exist_ok=True)
                view: Any = {
                    "viewport": {"width": width, "height": 900},
                    "device_scale_factor": WIDTHS[width][3],
                    "color_scheme": scheme,
                }
                context = browser.new_context(**view)
                for name in names:
                    page = context.new_page()
                    found += [f"{name} at {width} {scheme}: {fault}" for fault in look(page, asked.site / name, axe)]
                    height = min(TALLEST, page.evaluate("document.documentElement.scrollHeight"))
                    shot = folder / f"{name.removesuffix('.html').replace('/', '+')}.png"
                    clip: Any = {"x": 0, "y": 0, "width": width, "height": height}
                    page.screenshot(path=shot, full_page=True, clip=clip)
                    page.close()
                    shots.append((shot, name))
                context.close()
                made = sheets(shots, width, asked.out / "sheets" / folder.name)
                print(f"{folder.name}: {len(names)} pages on {made} sheets", flush=True)
        browser.close()
    (asked.out / "faults.txt").write_text("".join(f"{fault}\n" for fault in dict.fromkeys(found)), encoding="utf-8")
    print(f"{len(found)} faults in {asked.out / 'faults.txt'}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
