"""``python -m raysim`` and the version."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import raysim
from raysim.__main__ import COMMANDS, main
from raysim.launch import main as launch
from raysim.storage import environment
from tests.small_runs import IN_PROCESS, LOGISTIC
from tests.small_runs import words as words_of

ROOT = Path(raysim.__file__).parent


def test_it_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    runnable = {
        path.parent.name if path.stem == "__main__" else path.stem
        for path in (*ROOT.glob("*.py"), *ROOT.glob("*/__main__.py"))
        if path != ROOT / "__main__.py" and '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    assert runnable == set(COMMANDS)
    assert all(f"python -m raysim.{name} " in listed for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_by_its_name_is_the_module(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its help is the module's own, and so is its exit code for options that do not exist."""
    by_name = ended(main, command, "--help")
    shown = capsys.readouterr()
    by_module = ended(importlib.import_module(COMMANDS[command][0]).main, "--help")
    assert shown == capsys.readouterr() and shown.out and by_name == by_module == 0
    assert ended(main, command, "--nothing-like-this") == 2


def ended(command: Callable[[list[str]], int], *arguments: str) -> object:
    """What a command returned, or the code that argparse left it with."""
    try:
        return command([*arguments])
    except SystemExit as end:
        return end.code


@pytest.mark.slow
def test_the_installed_command_finds_what_lies_in_the_folder(tmp_path: Path) -> None:
    """A method of one's own, as python -m finds it: the installed script begins its path with its own folder."""
    source = "from raysim.methods.fedavg import FedAvg\nclass Mine(FedAvg): pass\n"
    (tmp_path / "my_method.py").write_text(source, encoding="utf-8")
    script = tmp_path / "bin" / "raysim"
    script.parent.mkdir()
    script.write_text("import sys\nfrom raysim.__main__ import main\nsys.exit(main())\n", encoding="utf-8")
    words = ["launch", *words_of({**IN_PROCESS, **LOGISTIC, "method.name": "my_method:Mine"})]
    done = subprocess.run(
        [sys.executable, script, *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [*tmp_path.glob("runs/*/rounds.csv")]


def test_other_words_are_refused_with_the_command_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["studdy"]) == 2
    assert "there is no command 'studdy'. Did you mean study?" in capsys.readouterr().err
    assert main(["sweep"]) == 2
    assert "there is no command 'sweep'. A run has one value of each option; several seeds" in capsys.readouterr().err


def test_options_without_a_command_are_those_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--method", "fedprox", "--print-config"]) == 0
    assert "fedprox" in capsys.readouterr().out
    assert main(["--method", "fedprox", "--mu", "0.1,1"]) == 2
    assert "'0.1,1' is not allowed. A run has one value" in capsys.readouterr().err
    assert main(["--seeds", "0,1"]) == 2
    assert "Unknown option --seeds. A run has one value" in capsys.readouterr().err
    assert main(["--method", "fedprox", "--mu", "a,b"]) == 2
    assert "study" not in capsys.readouterr().err


def test_one_place_says_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (main, launch):
        assert command(["--version"]) == 0
        assert capsys.readouterr().out == f"raysim {raysim.__version__}\n"
    assert environment.environment()["versions"]["raysim"] == raysim.__version__
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "raysim.version.__version__"}


def test_changelog_and_citation_are_of_this_version() -> None:
    """Changes after a release stand in a part of their own on top."""
    root = Path(__file__).parents[2]
    headings = re.findall(r"^## (.*)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    assert headings[:2] == ["Unreleased", f"{raysim.__version__} ({citation['date-released']})"]
    assert citation["version"] == raysim.__version__


def test_an_installed_package_has_the_files_beside_its_modules() -> None:
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["raysim"]
    beside = {path for path in ROOT.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    packaged = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert beside and beside <= packaged
    assert packaged - beside == set((ROOT / "reproduce" / "studies").glob("*.yaml"))  # behind a link, to docs
