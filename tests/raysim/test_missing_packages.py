"""Commands started by a Python without the packages that raysim needs, and the list of these packages."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from raysim.__main__ import COMMANDS
from raysim.missing_packages import NEEDED

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("command", [module.removesuffix(".__main__") for module, _ in COMMANDS.values()])
def test_a_bare_python_gets_one_sentence(command: str) -> None:
    bare = [sys.executable, "-S", "-m", command, "anything"]  # -S: without the packages of the environment
    ended = subprocess.run(bare, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2 and ended.stdout == ""
    assert ended.stderr.startswith(f"raysim: {sys.executable} has no package 'aiohttp'")
    assert ended.stderr.count("\n") == 1


def test_every_dependency_is_looked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {re.split(r"[\[<>=]", name)[0].lower().replace("_", "-") for name in project["dependencies"]}
    provided = packages_distributions()
    found = {name.lower().replace("_", "-") for needed in NEEDED for name in provided[needed]}
    assert asked == found
