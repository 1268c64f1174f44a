"""Draw the pictures in docs/ that are not a study's anew, and say which are out of date.

``python -m benchmarks.pictures [NAME ...]`` draws, ``python -m benchmarks.pictures --check`` only looks. A picture
carries a stamp of what it is made of: the settings of its run, and the code that draws it, without its comments,
docstrings and imports. That of spectra takes its graphs from ``RAYSIM_DATA``. The pictures of studies are drawn from
their rows by ``python -m raysim.study FILE --table-only``.
"""

from __future__ import annotations

import argparse
import ast
import functools
import hashlib
import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks import drawings, recordings

ROOT = Path(__file__).parent.parent
STAMP = "raysim-stamp"


@dataclass(frozen=True)
class Drawn:
    """One picture of the docs."""

    path: str
    words: Sequence[str]
    """The command line of its run."""
    sources: Sequence[str]
    """Files, or patterns of files, that say how it looks."""
    draw: Callable[[Drawn], bytes]

    def stamp(self) -> str:
        """Digest of settings and drawing code."""
        files = sorted(path for pattern in self.sources for path in ROOT.glob(pattern))
        return hashlib.sha256("\n".join([*self.words, *map(_meaning, files)]).encode()).hexdigest()[:16]

    def is_current(self) -> bool:
        """Whether the file in docs/ has been drawn by this code from these settings."""
        path = ROOT / self.path
        return path.is_file() and stamp_of(path) == self.stamp()


def _meaning(path: Path) -> str:
    """A file's text; of Python what it does, whatever its modules are called."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _says_nothing(line)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _says_nothing(line: ast.stmt) -> bool:
    is_text = isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
    return is_text or isinstance(line, (ast.Import, ast.ImportFrom))


def _timeline(drawn: Drawn) -> bytes:
    from raysim import timeline

    with tempfile.TemporaryDirectory() as folder:
        timeline.main([*drawn.words, "--output", f"{folder}/plan"])
        return Path(folder, "plan", "timeline.png").read_bytes()


def _spectra(drawn: Drawn) -> bytes:
    from raysim import spectra

    with tempfile.TemporaryDirectory() as folder:
        spectra.main([*drawn.words, "--output", f"{folder}/spectra.png"])
        return Path(folder, "spectra.png").read_bytes()


def _curve(drawn: Drawn) -> bytes:
    from raysim import launch

    with tempfile.TemporaryDirectory() as folder:
        launch.main([*drawn.words, "--engine.backend", "inline", "--output", f"{folder}/run"])
        return Path(folder, "run", "curve.png").read_bytes()


def _drawing(drawn: Drawn) -> bytes:
    stem, _, theme = Path(drawn.path).stem.partition("-")
    return drawings.DRAWINGS[stem](drawings.THEMES[theme or "light"])


_SCREENS: Mapping[str, tuple[Literal["light", "dark"], int, int]] = {
    "docs/pictures/page-light.png": ("light", 1280, 1400),
    "docs/pictures/page-dark.png": ("dark", 1280, 900),
    "docs/pictures/page-phone.png": ("light", 390, 844),
}


def _page(drawn: Drawn) -> bytes:
    return _screens(tuple(drawn.words))[drawn.path]


@functools.cache
def _screens(words: tuple[str, ...]) -> dict[str, bytes]:
    """The live page of one run on every screen."""
    from playwright.sync_api import sync_playwright

    from raysim import launch
    from raysim.ui.serving import Address, Page

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, "fedavg-digits")
        launch.main([*words, "--pictures", "false", "--engine.backend", "inline", "--output", str(folder)])
        with closing(Page(folder, Address("127.0.0.1", 0))) as page, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for path, (scheme, width, height) in _SCREENS.items():
                opened = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                opened.goto(page.url)
                opened.locator("#utilization path.js-line").first.wait_for()
                found[path] = bytes(opened.screenshot())
                opened.close()
            browser.close()
    return found


def _terminal(drawn: Drawn) -> bytes:
    return recordings.terminal(drawn.words)


def _live(drawn: Drawn) -> bytes:
    settings = {name.removeprefix("--"): value for name, value in zip(drawn.words[::2], drawn.words[1::2], strict=True)}
    more = {"engine.backend": "inline", "pictures": False}
    return recordings.page(settings | more, {"width": 900, "height": 760})


_PAGE = ("--method", "fedavg", "--model", "logistic", "--clients", "12", "--rounds", "60")
_PHONES = ("--method", "fedavg", "--devices.preset", "phones", "--timing.mode", "buffered", "--buffer", "5")
_MORE = (
    "--clients",
    "30",
    "--timing.concurrency",
    "12",
    "--schedule.rounds",
    "40",
    "--devices.drop_probability",
    "0.05",
)
PICTURES = (
    Drawn(
        "docs/pictures/timeline.png",
        (*_PHONES, *_MORE),
        ("raysim/report/timeline_plot.py", "raysim/report/canvas.py"),
        _timeline,
    ),
    Drawn(
        "docs/fedrad-digits.png", ("--method", "fedrad"), ("raysim/report/plots.py", "raysim/report/canvas.py"), _curve
    ),
    Drawn(
        "docs/pictures/spectra-sm-sn-cv.png",
        ("--setting", "SM-SN-CV"),
        ("raysim/report/spectra_plot.py", "raysim/report/canvas.py"),
        _spectra,
    ),
    *(
        Drawn(f"docs/pictures/{stem}{theme}.png", (), ("benchmarks/drawings.py", "raysim/report/canvas.py"), _drawing)
        for stem in drawings.DRAWINGS
        for theme in ("", "-dark")
    ),
    Drawn(
        "docs/pictures/terminal.svg",
        (
            "python -m raysim.launch --method fedrad --rounds 20 --engine.backend inline --output runs/fedrad",
            "python -m raysim.verify runs/fedrad",
        ),
        ("benchmarks/recordings.py",),
        _terminal,
    ),
    Drawn(
        "docs/pictures/page.webp",
        (*_PAGE[:-1], "40"),
        ("benchmarks/recordings.py", "raysim/ui/static/*"),
        _live,
    ),
    *(Drawn(path, _PAGE, ("raysim/ui/static/*", "raysim/report/settings_line.py"), _page) for path in _SCREENS),
)
"""All pictures that this program draws."""


def stamp_of(path: Path) -> str:
    """The stamp in a picture; empty: none."""
    from PIL import Image

    if path.suffix == ".svg":
        return path.read_text(encoding="utf-8").rpartition(f"<!-- {STAMP} ")[2].partition(" ")[0]
    with Image.open(path) as picture:
        if path.suffix == ".webp":
            return str(picture.info.get("xmp", b""), "utf-8")
        return str(picture.info.get(STAMP, ""))


def stamped(content: bytes, stamp: str) -> bytes:
    """A picture with a stamp in it: PNG, SVG, or an animated WebP."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    if content.startswith(b"<svg"):
        return content + f"<!-- {STAMP} {stamp} -->\n".encode()
    if content[8:12] == b"WEBP":
        return _with_chunk(content, b"XMP ", stamp.encode())
    info, buffer = PngInfo(), io.BytesIO()
    info.add_text(STAMP, stamp)
    with Image.open(io.BytesIO(content)) as picture:
        picture.convert("RGB").quantize(256).save(buffer, "PNG", pnginfo=info, optimize=True)
    return buffer.getvalue()


def _with_chunk(content: bytes, name: bytes, text: bytes) -> bytes:
    """An animated WebP with one more chunk at its end, of an even size; its head tells of it (bit 2: XMP)."""
    longer = content + name + len(text).to_bytes(4, "little") + text
    flags = bytes([longer[20] | 4])  # of the first chunk, VP8X
    return longer[:4] + (len(longer) - 8).to_bytes(4, "little") + longer[8:20] + flags + longer[21:]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code, 1 if a picture is out of date."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="pictures to draw, by the stems of their files (default: all)")
    parser.add_argument("--check", action="store_true", help="draw none; name those that are out of date")
    options = parser.parse_args(arguments)
    known = {Path(picture.path).stem: picture for picture in PICTURES}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"unknown picture {unknown[0]}. Known: {', '.join(known)}")
    chosen = [known[name] for name in options.names] or list(PICTURES)
    if options.check:
        late = [picture.path for picture in chosen if not picture.is_current()]
        for path in late:
            print(f"{path} is out of date: python -m benchmarks.pictures {Path(path).stem}", file=sys.stderr)
        return bool(late)
    for picture in chosen:
        (ROOT / picture.path).write_bytes(stamped(picture.draw(picture), picture.stamp()))
        print(picture.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
