"""Answers of commands: words or one JSON object, or one sentence and an exit code."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Never

import pytest

from raysim.config.answering import Answer, answered
from raysim.errors import ConfigError


def carried_out(answer: Callable[[argparse.Namespace], Answer], *words: str) -> int:
    parser = argparse.ArgumentParser(prog="python -m raysim.made")
    parser.add_argument("--json", action="store_true")
    return answered(parser, words, answer, "interrupted; it goes on")


def raising(error: BaseException) -> Callable[[argparse.Namespace], Never]:
    def answer(options: argparse.Namespace) -> Never:
        raise error

    return answer


def test_json_stands_alone_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(options: argparse.Namespace) -> Answer:
        print("a user's own code")
        return Answer("four\x1b[2J", {"found": 4}, 3)

    assert carried_out(answer, "--json") == 3
    said = capsys.readouterr()
    assert json.loads(said.out) == {"found": 4} and said.err == "a user's own code\n"
    assert carried_out(answer) == 3
    said = capsys.readouterr()
    assert said.out.startswith("a user's own code\nfour") and "\x1b" not in said.out and not said.err


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_full_standard_output_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert carried_out(lambda options: Answer("four", {"found": 4}), *words) == 2
    assert capsys.readouterr().err == (
        "raysim.made: standard output cannot be written (No space left on device). Make room there, or send it "
        "elsewhere.\n"
    )


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("--of: no."), 2, "raysim.made: --of: no.\n"),
        (FileNotFoundError(2, "No such file or directory", "/x"), 2, "raysim.made: [Errno 2] No such file or"),
        (
            SystemExit(0),
            2,
            "raysim.made: SystemExit: sys.exit(0) was called, and code of a run may not end the program",
        ),
        (KeyboardInterrupt(), 130, "raysim.made: interrupted; it goes on\n"),
    ],
)
def test_no_answer_is_one_sentence(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carried_out(raising(error)) == code
    out, err = capsys.readouterr()
    assert not out and err.startswith(said) and err.count("\n") == 1
