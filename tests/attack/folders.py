"""A run that is attacked: how it is made, resumed in this process, and judged."""

from __future__ import annotations

import contextlib
import io
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysim.config.run_config import RunConfig
from raysim.exit_codes import FAILED
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

    def fault(self, folder: Path, expected: dict[str, Any]) -> str:
        """What is wrong with it, "" if nothing is.

        A command may give the expected result, or refuse with a message of its own; it may neither give another result
        nor end with a traceback.
        """
        if "Traceback" in self.error:
            return "a traceback"
        if self.code == 0:
            return "" if fingerprint(folder) == expected else "another result, and exit code 0"
        return "" if "\nraysim: " in f"\n{self.error}" else "no message"


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
