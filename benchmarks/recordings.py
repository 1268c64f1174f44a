"""Recordings of a real run: its terminal as an animated SVG, its live page as an animated WebP.

Both are played in twenty seconds, whatever the run took: the terminal by its time stamps, the page round by round. Both
begin with the end of the run, so that a viewer that shows one picture only, or a reader in haste, sees a result.
"""

from __future__ import annotations

import html
import io
import os
import pty
import re
import select
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

LENGTH = 20.0
"""Seconds that a recording is played; for the first ``HELD`` of them it shows the end of the run."""
HELD = 4.0
FRAMES = 60
COLUMNS, LINES = 100, 15
TYPED = 1.2
"""Seconds for which a command stands before it begins."""
CODE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")
COLORS = {"38;5;237": "#3a3f4b", "38;5;70": "#7ec16e", "38;5;197": "#ff8c42", "1": "#ffffff"}
"""SGR code → color; all others are that of plain text."""
Line = tuple[tuple[str, str], ...]
"""Pieces of a line: color and text."""


def screens(output: Sequence[tuple[float, str]]) -> Iterator[tuple[float, list[Line]]]:
    """Time and lines of a terminal after each piece of output; lines that are wiped are written anew."""
    lines: list[list[tuple[str, str]]] = [[]]
    row, color = 0, ""
    for seconds, text in output:
        for code, letter, back, feed, words in CODE.findall(text):
            if words:
                lines[row].append((color, words))
            elif feed:
                row += 1
                lines += [[]] * (row == len(lines))
                lines[row] = list(lines[row])
            elif letter == "A":
                row -= int(code or 1)
            elif letter == "K" and code == "2":
                lines[row] = []
            elif letter == "m":
                color = COLORS.get(code, "")
            elif back:
                continue
        yield seconds, [tuple(line) for line in lines]


def typed(words: Sequence[str], folder: Path) -> list[tuple[float, str]]:
    """Output of a command in a terminal, each piece with the seconds since the start.

    Raises:
        RuntimeError: the command failed.
    """
    begun = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(LINES))
        os.execvp(words[0], list(words))
    found = []
    while select.select([terminal], [], [], 300)[0]:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        found.append((time.monotonic() - begun, read.decode("utf-8", "replace")))
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise RuntimeError(f"{shlex.join(words)}: {''.join(text for _, text in found)[-500:]}")
    return found


def terminal(commands: Sequence[str]) -> bytes:
    """The animated SVG of commands that follow one another in an empty folder."""
    output: list[tuple[float, str]] = []
    now = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for command in commands:
            output.append((now, f"\x1b[1m$ {command}\x1b[0m\r\n"))
            words = [sys.executable, *shlex.split(command)[1:]]
            output += [(now + TYPED + seconds, text) for seconds, text in typed(words, Path(folder))]
            now = output[-1][0] + TYPED
    return svg(list(screens(output)))


def svg(found: Sequence[tuple[float, list[Line]]]) -> bytes:
    """Screens as a film: each is shown from its time to the next one's; a reader who wants no motion sees the last."""
    factor = (LENGTH - HELD) / max(found[-1][0], LENGTH - HELD)
    kept: dict[int, list[Line]] = {}
    for seconds, lines in found:
        lines = [part for line in lines for part in _wrapped(line)]
        while lines and not lines[-1]:
            lines = lines[:-1]
        kept[int(seconds * factor / (LENGTH - HELD) * FRAMES)] = lines[-LINES:]
    high, width, last = LINES * 19 + 24, COLUMNS * 8.43 + 24, len(kept) - 1
    stops, frames = [], []
    for number, (place, lines) in enumerate(kept.items()):
        stops.append(f"{place / FRAMES * (1 - HELD / LENGTH):.2%}{{transform:translateY({-number * high}px)}}")
        rows = "".join(f'<text x="12" y="{25 + 19 * row}">{_spans(line)}</text>' for row, line in enumerate(lines))
        frames.append(f'<g transform="translate(0 {number * high})">{rows}</g>')
    motion = f"animation:play {LENGTH:g}s step-end -{LENGTH - HELD:g}s infinite"
    style = (
        f"text{{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#c9d1d9;white-space:pre}}"
        f"#film{{transform:translateY({-last * high}px)}}"
        f"@media (prefers-reduced-motion:no-preference){{#film{{{motion}}}}}@keyframes play{{{''.join(stops)}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {high}" width="{width:g}" height="{high}">'
        f'<style>{style}</style><rect width="100%" height="100%" rx="8" fill="#14181e"/>'
        f'<g id="film">{"".join(frames)}</g></svg>\n'
    ).encode()


def _wrapped(line: Line) -> list[Line]:
    """A line of one color that is wider than the terminal, as lines."""
    if len(line) != 1 or len(line[0][1]) <= COLUMNS:
        return [line]
    color, text = line[0]
    return [((color, text[start : start + COLUMNS]),) for start in range(0, len(text), COLUMNS)]


def _spans(line: Line) -> str:
    pieces = "".join(
        f'<tspan fill="{color}">{html.escape(text)}</tspan>' if color else html.escape(text) for color, text in line
    )
    return pieces.rstrip()


def page(settings: Mapping[str, object], size: Mapping[str, int]) -> bytes:
    """The animated WebP of the live page of a run: a picture after each round, and some of its end.

    Args:
        settings: those of the run, which is made in this process and waits for each picture.
        size: width and height of the window.
    """
    from playwright.sync_api import sync_playwright

    import raysim
    from raysim.ui.serving import Address, Page

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    shots: list[bytes] = []
    with tempfile.TemporaryDirectory() as root, sync_playwright() as playwright, ExitStack() as stack:
        folder = Path(root, "run")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = browser.new_page(viewport=dict(size), color_scheme="light")  # type: ignore[arg-type]

        class Camera(raysim.Observer):
            def round_finished(self, row: Mapping[str, Any]) -> None:
                number = row["round"]
                if number == 1:
                    served = stack.enter_context(closing(Page(folder, Address("127.0.0.1", 0))))
                    opened.goto(served.url)
                else:  # the round before has been written down, and drawn
                    shown = f"() => parseInt(document.body.innerText.match(/(\\d+) of \\d+ rounds/)[1]) >= {number - 1}"
                    opened.wait_for_function(shown, timeout=60_000)
                    opened.wait_for_timeout(400)
                shots.append(opened.screenshot(timeout=120_000))

        raysim.run({**settings, "output": str(folder)}, observer=Camera())
        opened.locator("text=finished").first.wait_for(timeout=60_000)
        shots.append(opened.screenshot(timeout=120_000))
        browser.close()
    return _film(shots)


def _film(shots: Sequence[bytes]) -> bytes:
    """Pictures, one after another, as an animated WebP that begins with the last one, which stays."""
    from PIL import Image

    *others, first = (Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots)
    durations = [int(1000 * HELD)] + [int(1000 * (LENGTH - HELD) / len(others))] * len(others)
    buffer = io.BytesIO()
    first.save(buffer, "WEBP", save_all=True, append_images=others, duration=durations, loop=0, quality=55, method=4)
    return buffer.getvalue()
