"""A run that is attacked: how it is made, resumed in this process, and judged."""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysim.config.run_config import RunConfig
from raysim.errors import FAILED, FINISHED
from raysim.launch import main
from tests.fingerprint import fingerprint
from tests.small_runs import small_run

BASE: dict[str, object] = {
    "method.name": "local",  # clients keep states
    "model.name": "logistic",
    "workload.clients": 3,
    "workload.limit": 120,
    "schedule.rounds": 6,
    "schedule.local_epochs": 1,
    "engine.checkpoint_every": 2,
}


def small(output: Path, **options: object) -> RunConfig:
    """A run of a second."""
    return small_run(output, BASE, **options)


@dataclass(frozen=True)
class Ending:
    """How the command line ended."""

    code: int
    error: str
    """Standard error."""

    def print(self) -> Ending:
        """Say it again on standard error."""
        sys.stderr.write(self.error)
        return self

    def fault(self) -> str:
        """What is wrong with what was said, "" if nothing is: one message of raysim's own if it did not go well."""
        if "Traceback" in self.error:
            return "a traceback"
        messages = f"\n{self.error}".count("\nraysim: ")
        return "" if messages == (self.code != FINISHED) else f"exit code {self.code} with {messages} messages"

    def fault_of_run(self, folder: Path, expected: dict[str, Any]) -> str:
        """What is wrong, too, with the result of a run: it may be the expected one, or there is a message."""
        other = self.code == FINISHED and fingerprint(folder) != expected
        return "another result, and exit code 0" if other else self.fault()


def resume(folder: Path) -> Ending:
    """``python -m raysim.launch --resume FOLDER``, in this process."""
    return launch(["--resume", str(folder)])


def launch(words: Sequence[str]) -> Ending:
    """``python -m raysim.launch WORDS``, in this process; an exception that comes out of it is exit code 1."""
    error = io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(words)
        except Exception:
            traceback.print_exc()
            code = FAILED
    return Ending(code, error.getvalue())
