"""An error on the terminal cannot steer it."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from raysim import evaluate, launch, study, timeline
from raysim.cli.exit_status import tell
from raysim.driver.outcome import Outcome
from raysim.storage.complaint import complain

FOREIGN = "\x1b]0;owned\x07\x1b[2J\r\x9b5m"


def test_control_characters_are_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    complain(f"é `x` {FOREIGN}\n", "raysim.ui")
    assert capsys.readouterr().err == "raysim.ui: é `x` \\x1b]0;owned\\x07\\x1b[2J\\r\\x9b5m\n\n"


def test_how_a_run_failed_is_told_without_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(Outcome("failed", FOREIGN, f"Traceback\n{FOREIGN}"), tmp_path / "none", 130, "")
    said = capsys.readouterr().err
    assert "\\x07" in said and not set(said) & set("\x1b\x07\r\x9b")


@pytest.mark.parametrize("command", [launch, study, evaluate, timeline])
def test_a_command_says_its_error_without_them(
    command: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = f"{tmp_path}/a{FOREIGN.replace('/', '')}"
    words = {launch: ["--config", name], timeline: ["--config", name]}.get(command, [name])
    monkeypatch.setattr(sys, "argv", ["raysim", *words])
    with suppress(SystemExit):
        command.main(words)
    said = capsys.readouterr().err
    assert "\\x1b" in said and not set(said) & set("\x1b\x07\r\x9b")
