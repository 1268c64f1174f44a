"""A page of tables as Markdown, in which names are text: no HTML, no link, no further cell."""

from __future__ import annotations

import re
import textwrap

from raysim.comparison.table import Entry, Head, Page, Table
from raysim.storage.folder_files import without_controls

WIDTH = 120
"""Length of a line of text."""
TAG = re.compile("<(?=[A-Za-z/!?])")


def page(content: Page) -> str:
    """All tables with the sentences over and under them, without a title."""
    parts = [*map(_wrapped, content.before), *map(table, content.tables)]
    if content.origin:
        parts.append("\n".join(map(_wrapped, content.origin)))
    return "\n\n".join(parts)


def table(content: Table) -> str:
    """One table with its notes; empty if it has no row."""
    if not content.rows:
        return ""
    heads = [content.corner, *map(_heading, content.heads)]
    lines = [_line(heads), "|---" * len(heads) + "|"]
    lines += [_line([name, *map(_text, entries)]) for name, entries in content.rows]
    return "\n".join([*lines, *(f"\n{_wrapped(note)}" for note in content.notes)])


def as_text(text: str) -> str:
    """Text that may hold foreign names, in one line, of which a reader makes no HTML, link or picture."""
    return TAG.sub("&lt;", without_controls(text)).replace("](", "]\\(")


def _line(texts: list[str]) -> str:
    escaped = (as_text(text).replace("\\|", "\\\\|").replace("|", "\\|") for text in texts)
    return f"| {' | '.join(escaped)} |"


def _heading(head: Head) -> str:
    return f"{head.group}, {head.words}" if head.group else head.words


def _text(entry: Entry) -> str:
    """The text of a cell: the best in bold, those that are not told from it behind ≈."""
    marked = {"best": f"**{entry.text}**", "near": f"≈ {entry.text}", "": entry.text}[entry.mark]
    return f"{marked} {entry.count}".strip()


def _wrapped(text: str) -> str:
    return textwrap.fill(as_text(text), WIDTH, break_long_words=False, break_on_hyphens=False)
