"""The two locks of a run's folder, which the system frees however a process ends.

``process.json`` is locked by the process that launched the run for as long as it lives, over deaths of the driver too,
and names it. ``.lock`` is locked by the process that drives the rounds, which with Ray is another one, perhaps on
another machine, and which may outlive a launcher that was killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from raysim.errors import ResultsError
from raysim.storage.atomic_files import write_whole, writing
from raysim.storage.folder_files import open_file
from raysim.storage.untrusted_files import UnreadableFileError, check_types, read_json

LAUNCHER, DRIVER = "process.json", ".lock"
LAUNCHER_SECONDS = 2.0
"""Patience with who only looks and holds the lock for a moment."""
DRIVER_SECONDS = 10.0
"""Patience with a driver that was killed and lets go soon."""


@contextmanager
def launching(folder: Path) -> Iterator[None]:
    """Hold the launcher's lock on a run and write this process's name into it.

    Raises:
        ResultsError: another process holds it, or the folder cannot be written.
    """

    def refusal() -> str:
        other = holder(folder)
        return (
            f"{folder}: process {other.get('process', '?')} on {other.get('host', '?')} is at work on this run. Watch "
            f"it with: python -m raysim.ui {folder}"
        )

    with _locked(folder / LAUNCHER, LAUNCHER_SECONDS, refusal) as file:
        with writing(folder / LAUNCHER):
            file.truncate(0)
            me = {"process": os.getpid(), "host": socket.gethostname(), "started": time.time()}
            write_whole(file, json.dumps(me).encode())
        yield


@contextmanager
def driving(folder: Path) -> Iterator[None]:
    """Hold the driver's lock on a run: no other process changes its tables and checkpoints meanwhile.

    Raises:
        ResultsError: another process holds it, and still did after a few seconds.
    """
    refusal = f"{folder}: another process is at work on this run; wait for it or stop it first"
    with _locked(folder / DRIVER, DRIVER_SECONDS, lambda: refusal):
        yield


def holder(folder: Path) -> dict[str, Any]:
    """Process number, host and start of the launcher that is at work, or was last; empty if there was none."""
    try:
        found = read_json(folder / LAUNCHER)
        check_types(found, {"process": int, "host": str, "started": (int, float)})
    except (OSError, UnreadableFileError):
        return {}
    return found


def is_held(path: Path) -> bool:
    """Whether a process holds the lock on a file."""
    try:
        with open_file(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # let go again at once: who starts tries for seconds
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def _locked(path: Path, seconds: float, refusal: Callable[[], str]) -> Iterator[FileIO]:
    """The file, made if absent and locked; tried for some seconds."""
    with writing(path):
        file = open_file(path, "ab")
    with file:
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise ResultsError(refusal()) from error
                time.sleep(0.05)
        yield file
