"""What a run notes of the machine and of the code."""

from __future__ import annotations

import getpass
import json
import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest

from raysim.storage import environment as environment_module
from raysim.storage import run_folder


def test_environment_is_complete_and_names_nobody() -> None:
    found = run_folder.environment()
    assert found["python"] == platform.python_version()
    assert found["versions"]["numpy"] == np.__version__ and set(found["versions"]) >= {
        "ray",
        "torch-geometric",
        "scipy",
    }
    assert {"platform", "cpu", "cpu_count", "commit", "dirty", "date"} <= set(found)
    text = json.dumps(found)
    for secret in (platform.node(), str(Path.home()), str(Path(run_folder.__file__).parent)):
        assert secret not in text
    assert getpass.getuser() not in json.dumps({key: found[key] for key in ("platform", "date", "versions")})


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "processor : 0\ncpu family : 26\nmodel : 2\nmodel name : AMD EPYC\n\nmodel : 3\n",
            "AMD EPYC, family 26, model 2",
        ),
        ("model name : POWER9\n", "POWER9"),
        ("BogoMIPS : 50.00\n", None),
    ],
)
def test_a_processor_is_told_from_others_of_its_make(
    monkeypatch: pytest.MonkeyPatch, lines: str, expected: str | None
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: lines)
    assert environment_module.processor() == expected


def test_the_commit_is_that_of_the_tree_the_code_is_in() -> None:
    root = Path(__file__).parents[3]
    assert (root / "raysim" / "storage").is_dir()
    found = run_folder.environment()
    assert {name: found[name] for name in ("commit", "dirty")} == environment_module._commit(root)
    assert found["commit"] is not None or not (root / ".git").exists()


def test_commit_and_dirty_flag(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert environment_module._commit(tmp_path) == {"commit": None, "dirty": None}
    git("init")
    (tmp_path / "raysim").mkdir()
    (tmp_path / "raysim" / "a.py").write_text("1")
    git("add", ".")
    git("commit", "-m", "first")
    assert environment_module._commit(tmp_path) == {"commit": git("rev-parse", "HEAD"), "dirty": False}
    assert environment_module._commit(tmp_path / "raysim") == {"commit": None, "dirty": None}  # not its own checkout
    (tmp_path / "notes").write_text("not source")
    assert environment_module._commit(tmp_path)["dirty"] is False
    (tmp_path / "raysim" / "new.py").write_text("2")
    assert environment_module._commit(tmp_path)["dirty"] is True
