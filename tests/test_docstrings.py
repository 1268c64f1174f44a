"""A docstring's first line is a sentence without the name above it; it does not begin in the middle of one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.test_layout import ROOT, modules

FRAGMENT = re.compile(r"\s*(What|Of|By)\b")


def fragments(path: Path) -> list[int]:
    """Lines of strings that stand alone, docstrings and notes under attributes, and begin as half a sentence."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    return [text.lineno for text in texts if isinstance(text.value, str) and FRAGMENT.match(text.value)]


def test_fragments_are_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""A sentence."""\nx = 1\n"""Of y."""\n\n\ndef f() -> None:\n    """What it does."""\n')
    assert fragments(path) == [3, 7]


def test_no_docstring_begins_in_the_middle_of_a_sentence() -> None:
    others = (
        path.relative_to(ROOT).as_posix() for room in ("benchmarks", "examples") for path in (ROOT / room).rglob("*.py")
    )
    found = {name: lines for name in (*modules(), *others) if (lines := fragments(ROOT / name))}
    assert found == {}
