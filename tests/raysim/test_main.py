"""``python -m raysim`` and the version."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

import raysim
from raysim.__main__ import COMMANDS, main
from raysim.launch import main as launch
from raysim.storage import environment

ROOT = Path(raysim.__file__).parent


def test_it_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    runnable = {
        "raysim." + (path.parent.name if path.stem == "__main__" else path.stem)
        for path in (*ROOT.glob("*.py"), *ROOT.glob("*/__main__.py"))
        if path != ROOT / "__main__.py" and '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    assert runnable == set(COMMANDS)
    assert all(f"python -m {name}" in listed for name in COMMANDS)
    assert all(importlib.util.find_spec(name) for name in COMMANDS)


def test_other_words_are_refused_with_the_command_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study"]) == 2
    assert "did you mean python -m raysim.study?" in capsys.readouterr().err


def test_one_place_says_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (main, launch):
        assert command(["--version"]) == 0
        assert capsys.readouterr().out == f"raysim {raysim.__version__}\n"
    assert environment.environment()["versions"]["raysim"] == raysim.__version__
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "raysim.version.__version__"}


def test_an_installed_package_has_the_files_beside_its_modules() -> None:
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["raysim"]
    beside = {path for path in ROOT.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert beside and beside == {path for pattern in patterns for path in ROOT.glob(pattern)}
