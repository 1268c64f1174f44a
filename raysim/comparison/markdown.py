"""A page of tables as Markdown."""

from __future__ import annotations

import textwrap

from raysim.comparison.table import Entry, Head, Page, Table

WIDTH = 120
"""Length of a line of text."""


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


def _line(texts: list[str]) -> str:
    escaped = (text.replace("|", "\\|") for text in texts)
    return f"| {' | '.join(escaped)} |"


def _heading(head: Head) -> str:
    return f"{head.group}, {head.words}" if head.group else head.words


def _text(entry: Entry) -> str:
    """The text of a cell: the best in bold, those that are not told from it behind ≈."""
    marked = {"best": f"**{entry.text}**", "near": f"≈ {entry.text}", "": entry.text}[entry.mark]
    return f"{marked} {entry.count}".strip()


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
