"""The answer of a command: in words, as one JSON object (``--json``), or why there is none."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Never, TextIO

from raysim.config.command_line import Invocation
from raysim.config.help_text import json_text
from raysim.errors import FINISHED, REFUSED, STOPPED, ConfigError, RaysimError
from raysim.leaving import staying
from raysim.storage.complaint import complain
from raysim.storage.folder_files import printable


@dataclass(frozen=True)
class Answer:
    """All that a command found out."""

    text: str = ""
    """In words; empty: all was said already."""
    told: Mapping[str, Any] | None = None
    """The same as JSON has it."""
    code: int = FINISHED
    """The exit code."""
    error: str = ""
    """Why the command failed, in one sentence; JSON has it as ``error``."""


def answered(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    answer: Callable[[argparse.Namespace], Answer],
    interrupted: str = "interrupted",
) -> int:
    """Carry out a command line that a parser reads; returns the exit code.

    Args:
        answer: finds the answer to what the parser has read; a user's own code may run in it, and may not end the
            command with a code of its own.
        interrupted: is said after Ctrl-C.
    """
    as_json = asks_for_json(arguments)
    refusing(parser, arguments)

    def find() -> Answer:
        options = parser.parse_args(arguments)
        with staying():
            return answer(options)

    return concluded(parser.prog.rpartition(" ")[2], as_json, find, interrupted)


def refusing(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> None:
    """With ``--json`` a slip on the command line is an error as all are; argparse prints its usage and leaves."""
    if asks_for_json(arguments):
        parser.error = _refuse  # type: ignore[method-assign]


def asks_for_json(arguments: Sequence[str] | None) -> bool:
    """Whether a command line has ``--json``."""
    return "--json" in (sys.argv[1:] if arguments is None else arguments)


def concluded(program: str, as_json: bool, find: Callable[[], Answer], interrupted: str = "interrupted") -> int:
    """Find a command's answer and print it, or why there is none; returns the exit code.

    With ``as_json``, standard output is one object, also of an error, and all else that is printed goes to standard
    error.
    """
    output = sys.stdout
    try:
        with redirect_stdout(sys.stderr if as_json else output):
            found = find()
    except (RaysimError, OSError) as error:
        found = Answer(code=REFUSED, error=str(error))
    except KeyboardInterrupt:
        found = Answer(code=STOPPED, error=interrupted)
    if found.error:
        complain(found.error, program)
    told = {"error": found.error} if found.error else {}
    try:
        if as_json and (told or found.told is not None):
            print_whole(json_text(told | dict(found.told or {})), output)
        elif found.text and not as_json:
            print_whole(printable(found.text), output)
    except ConfigError as error:
        complain(str(error), program)
        return REFUSED
    return found.code


def told_of_options(invocation: Invocation, about: str) -> Answer:
    """The answer to ``--help``, ``--list``, ``--version`` and ``--print-config`` of a command with a run's options.

    Args:
        about: what the command is for, before its help in words.
    """
    text = f"{about}\n{invocation.text}" if invocation.action == "help" else invocation.text
    return Answer(text, invocation.told)


def print_whole(text: str, output: TextIO) -> None:
    """Print; a reader that has seen enough, as ``| head`` has, is no error.

    Raises:
        ConfigError: it cannot be written, to a disk that is full, say.
    """
    try:
        print(text, file=output, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # else Python tries again when it ends
        if not isinstance(error, BrokenPipeError):
            raise ConfigError(
                f"standard output cannot be written ({error.strerror}). Make room there, or send it elsewhere."
            ) from error


def _refuse(message: str) -> Never:
    raise ConfigError(message)
