"""Self-contained HTML pages from the templates beside this file: nothing from outside, all text escaped.

A page has no script but, where it is asked for, the one beside the templates that sorts tables, which the page's policy
names by its digest; it works without that too.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from raysim.report.canvas import NARROW, WIDE, Form
from raysim.report.page_svg import series_colors

WORDS = ("name", "marks", "who", "stage", "phase")
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
    is_bar: ClassVar[bool] = True


@dataclass(frozen=True)
class Heat:
    """A cell of a table with a number, on a ground that is the stronger the larger its share of the largest."""

    text: str
    share: float
    is_heat: ClassVar[bool] = True


@dataclass(frozen=True)
class Marks:
    """A cell of a table with what is the matter, each as its kind and a few words."""

    marks: Sequence[tuple[str, str]]

    @property
    def text(self) -> str:
        """The words in a line."""
        return " ".join(text for _, text in self.marks)


@dataclass(frozen=True)
class Number:
    """A cell of a table with a number as text, and the value by which to sort."""

    text: str
    value: float
    best: bool = False
    """Whether it is the best of its column."""


Cell = str | Link | Bar | Heat | Marks | Number
MARKS = {
    "late": "the last client task took more than twice the median of its round",
    "lost": "client tasks that failed, or were sent again because their actor died",
    "unfair": "in the worst tenth, and more than 5 points below the median",
    "malicious": "an attacker: its last update was replaced, or made from changed data",
}
"""Marks of clients with trouble → their meaning."""
SIGN, GAP = 7.6, 20.0
"""Pixels of a sign of a table, and between two columns, about."""
DESK, PHONE = 950.0, 300.0
"""Pixels that a table has on a page on a desk and on a phone."""


class Table:
    """A table of a page.

    Args:
        words: headings of columns that hold words; the others are flush right.
    """

    def __init__(self, headings: Sequence[str], rows: Iterable[Iterable[Cell]], words: Collection[str] = WORDS) -> None:
        self.headings, self.rows = headings, [list(row) for row in rows]
        self.words = {place for place, heading in enumerate(headings) if heading in words}

    @property
    def reach(self) -> str:
        """Where the table is wider than its page, as far as that can be told: on a desk, on a phone, or nowhere."""
        lines = [self.headings, *self.rows]
        signs = (max(_signs(line[place]) for line in lines) for place in range(len(self.headings)))
        width = sum(SIGN * count + GAP for count in signs)
        return "desk" if width > DESK else "phone" if width > PHONE else ""


def _signs(cell: Cell) -> int:
    return len(cell) if isinstance(cell, str) else len(cell.text) + (14 if isinstance(cell, Bar) else 0)


@dataclass(frozen=True)
class Picture:
    """A picture as SVG elements of the page, in a form for a desk and one for a phone."""

    description: str
    wide: Markup
    narrow: Markup


@dataclass(frozen=True)
class Photo:
    """A PNG on white, as a run's folder has it."""

    description: str
    content: bytes


def in_both_forms(draw: Callable[[Form], bytes], description: str) -> Picture:
    """The picture that ``draw(form)`` makes, as wide and as narrow form; its text has to be escaped already."""
    return Picture(description, *(Markup(draw(form).decode()) for form in (WIDE, NARROW)))


def render(template: str, content: dict[str, object], *, sorts: bool = False) -> bytes:
    """The whole page that a template makes of its content.

    Args:
        sorts: whether its tables are sorted by a click on a heading.
    """
    if sorts:
        script = _SORTS.read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        content = content | {"script": Markup(script), "script_digest": digest}
    return _ENVIRONMENT.get_template(template).render({"live": None} | content).encode(errors="backslashreplace")


def render_parts(template: str, content: dict[str, object], names: Iterable[str]) -> dict[str, str]:
    """Some parts of a page, the template's blocks, each by itself."""
    found = _ENVIRONMENT.get_template(template)
    return {name: "".join(found.blocks[name](found.new_context(content))) for name in names}


def style() -> str:
    """The style of all pages, as a file."""
    return _ENVIRONMENT.get_template("style.css").render()


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_SORTS = Path(__file__).parent / "templates" / "sort.js"
_ENVIRONMENT.globals |= {"series_colors": series_colors, "marks": MARKS}
_ENVIRONMENT.filters["data_address"] = lambda png: f"data:image/png;base64,{base64.b64encode(png).decode()}"
_ENVIRONMENT.globals["pieces"] = _ENVIRONMENT.get_template("pieces.html").module
