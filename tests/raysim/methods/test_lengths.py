"""A method reads like its paper: one short file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import raysim

METHODS = Path(raysim.__file__).parent / "methods"
STANDARD = (
    *("scaffold", "feddyn", "fednova", "moon", "ditto", "pfedme", "fedrep", "fedper", "fedbabu", "fedproto", "fedala"),
    *("perfedavg", "ifca", "clustered", "qfedavg"),
)


def code_lines(path: Path) -> int:
    """Lines that are neither empty nor a comment, without docstrings and without the options."""
    text, dropped = path.read_text(encoding="utf-8"), set[int]()
    for node in ast.walk(ast.parse(text)):
        for part in getattr(node, "body", []) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else []:
            says = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
            if says or (isinstance(part, ast.AnnAssign) and "Help(" in ast.unparse(part)):
                dropped |= set(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(number not in dropped and line.strip()[:1] not in ("", "#") for number, line in lines)


@pytest.mark.parametrize("name", STANDARD)
def test_a_standard_method_has_at_most_60_lines(name: str) -> None:
    assert code_lines(METHODS / f"{name}.py") <= 60


def test_the_example_of_an_own_method_is_as_short() -> None:
    """What docs/methods-of-your-own.md promises of a method."""
    assert code_lines(METHODS.parents[1] / "examples" / "own_method.py") <= 60


def test_the_four_of_one_file_have_at_most_60_lines_each() -> None:
    assert code_lines(METHODS / "fedopt.py") <= 4 * 60
