"""The command line in an empty folder, with a user's own code beside it; and the file of a small study."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from raysim.launch import main
from tests.raysim.small_study import TEXT
from tests.small_runs import IN_PROCESS, LOGISTIC, words

Start = Callable[..., tuple[int, str]]
SMALL = words(IN_PROCESS | LOGISTIC | {"schedule.rounds": 2, "engine.checkpoint_every": 1})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: nothing is in it but ``mine.py``, a user's own code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    shutil.copy(Path(__file__).parent / "user_code.py", tmp_path / "mine.py")
    return tmp_path


@pytest.fixture
def start(place: Path, capsys: pytest.CaptureFixture[str]) -> Start:
    """Runs the command line there; gives exit code and standard error."""

    def run(*arguments: str, small: bool = True) -> tuple[int, str]:
        code = main([*(SMALL if small else ()), *arguments])
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The file of a small study."""
    path = tmp_path / "small.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path
