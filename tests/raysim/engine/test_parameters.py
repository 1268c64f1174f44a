"""Nothing in the engine and in local training takes more than a reader can keep in mind."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([*(ROOT / "raysim/engine").glob("*.py"), *(ROOT / "raysim/training").glob("*.py")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_constructors_take_at_most_six_parameters_and_functions_eight(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            names = [name for name in names if name not in ("self", "cls")]
            assert len(names) <= (6 if node.name == "__init__" else 8), f"{node.name}: {names}"
