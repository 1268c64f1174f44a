"""Self-contained HTML pages from the templates beside this file: no script, nothing from outside, all text escaped."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

WORDS = ("name", "who", "stage", "phase")
"""Columns that hold text."""


@dataclass(frozen=True)
class Link:
    """A cell of a table that leads to another page."""

    text: str
    address: str


@dataclass(frozen=True)
class Bar:
    """A cell of a table with a share between 0 and 1, as text and as a bar."""

    text: str
    share: float


Cell = str | Link | Bar


class Table:
    """A table of a page.

    Args:
        words: headings of columns that hold words; the others are flush right.
    """

    def __init__(self, headings: Sequence[str], rows: Iterable[Iterable[Cell]], words: Collection[str] = WORDS) -> None:
        self.headings, self.rows = headings, [list(row) for row in rows]
        self.words = {place for place, heading in enumerate(headings) if heading in words}


@dataclass(frozen=True)
class Picture:
    """A PNG on light ground and, where there is one, its twin on dark ground, which a browser chooses by itself."""

    description: str
    light: bytes
    dark: bytes = b""


def on_both_grounds(draw: Callable[[bool], bytes], description: str) -> Picture:
    """The picture that ``draw(dark)`` makes, for light and for dark."""
    return Picture(description, draw(False), draw(True))


def render(template: str, **content: object) -> bytes:
    """The whole page that a template makes of its content."""
    return _ENVIRONMENT.get_template(template).render(**content).encode(errors="backslashreplace")


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_ENVIRONMENT.filters["data_address"] = lambda png: f"data:image/png;base64,{base64.b64encode(png).decode()}"
