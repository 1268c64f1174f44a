"""Every module has a test of its name, or docs/architecture.md says which test covers it."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("raysim", "actors", "aggregators", "workloads")
ROW = re.compile(r"^\| (`[^|]+`) \| `(tests/[^`]+\.py)` \|$", re.MULTILINE)
ELSEWHERE = [
    (pattern, test)
    for modules, test in ROW.findall((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
    for pattern in re.findall(r"`([^`]+)`", modules)
]


def modules() -> list[str]:
    found = (path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    names = (path.relative_to(ROOT).as_posix() for path in found if not any(part.is_symlink() for part in path.parents))
    return [name for name in names if not name.endswith(("__init__.py", "__main__.py"))]


def has_a_test_of_its_name(module: str) -> bool:
    path = Path(module)
    return (ROOT / "tests" / path.parent / f"test_{path.stem.strip('_')}.py").exists()


WITHOUT = [module for module in modules() if not has_a_test_of_its_name(module)]


def test_a_module_without_a_test_of_its_name_is_in_the_table() -> None:
    patterns = [pattern for pattern, _ in ELSEWHERE]
    assert len(modules()) > 300
    assert [module for module in WITHOUT if not any(fnmatch(module, pattern) for pattern in patterns)] == []


@pytest.mark.parametrize(("pattern", "test"), ELSEWHERE, ids=lambda text: text)
def test_a_row_names_a_module_that_needs_it_and_a_test_that_is_there(pattern: str, test: str) -> None:
    assert any(fnmatch(module, pattern) for module in WITHOUT)
    assert (ROOT / test).exists()
