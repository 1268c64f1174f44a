"""Texts of the code as Markdown: docstrings, tables, and words that may hold any character."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")
CODE = re.compile(r"``(.+?)``", re.DOTALL)
HEADS = re.compile(r"^(Heads of the runs' proofs, seed: first digits\.)\n((?:(?!<!--).+\n?)+)", re.MULTILINE)
ROLE = re.compile(r":\w+:`~?([^`]+)`")


def plain(text: str) -> str:
    """The text with every character of Markdown's own escaped, so that it is shown as it is."""
    return SPECIAL.sub(r"\\\1", text)


def words(text: str) -> str:
    """A sentence of a docstring: ``names of code`` and roles become code, all else is shown as it is."""
    text = ROLE.sub(r"``\1``", text)
    parts = CODE.split(text)
    return "".join(f"`{' '.join(part.split())}`" if number % 2 else plain(part) for number, part in enumerate(parts))


def docstring(owner: Any) -> str:
    """The docstring of a class, or of its module where the class has none of its own, as Markdown.

    Paragraphs and lists stay, what is indented further becomes a block of code (equations).
    """
    text = inspect.getdoc(owner) or ""
    if not text or text.startswith(f"{owner.__name__}("):  # written by dataclass
        text = inspect.getdoc(sys.modules[owner.__module__]) or ""
    return "\n\n".join(_block(block) for block in re.split(r"\n\s*\n", text) if block.strip())


def _block(block: str) -> str:
    lines = block.strip("\n").splitlines()
    if all(line.startswith("    ") for line in lines):
        return "\n".join(["```text", *(line[4:] for line in lines), "```"])
    first = next((number for number, line in enumerate(lines) if line.startswith("- ")), None)
    if first:  # a list below the words that lead to it
        return f"{_block(chr(10).join(lines[:first]))}\n\n{_block(chr(10).join(lines[first:]))}"
    if first == 0:
        items = re.split(r"\n(?=- )", "\n".join(lines))
        return "\n".join("- " + words(" ".join(item.removeprefix("- ").split())) for item in items)
    return words(" ".join(" ".join(lines).split()))


def heads_as_lines(text: str) -> str:
    """The heads of proofs under a study's table as a block of lines, which Markdown would run together."""
    return HEADS.sub(lambda found: f"{found[1]}\n\n```text\n{found[2].rstrip()}\n```\n", text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; its cells are Markdown already."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
