"""The answer of a command that computes with a run's folder: in words, as JSON, or why there is none."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

from raysim.config.help_text import json_text
from raysim.errors import FINISHED, REFUSED, STOPPED, RaysimError
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


def answered(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    answer: Callable[[argparse.Namespace], Answer],
    interrupted: str = "interrupted",
) -> int:
    """Carry out a command line, whose option ``--json`` asks for one JSON object; returns the exit code.

    Args:
        answer: finds the answer to what the parser has read; a user's own code may run in it.
        interrupted: is said after Ctrl-C.
    """
    output, program = sys.stdout, parser.prog.rpartition(" ")[2]
    try:
        options = parser.parse_args(arguments)
        as_json = getattr(options, "json", False)
        # With --json a user's own code prints to standard error; it may not end the command with a code of its own.
        with staying(), redirect_stdout(sys.stderr if as_json else output):
            found = answer(options)
    except (RaysimError, OSError) as error:
        complain(error, program)
        return REFUSED
    except KeyboardInterrupt:
        print(f"{program}: {interrupted}", file=sys.stderr)
        return STOPPED
    if found.text:
        print(json_text(found.told) if as_json else printable(found.text), file=output)
    return found.code
