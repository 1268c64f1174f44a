"""Lock file of the process that launched a run, by which others see whether it is still there.

``process.json`` is locked by that process for as long as it lives, over deaths of the driver too; the system lets go of
the lock however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raysim.errors import ResultsError
from raysim.storage.atomic_files import write_whole, writing
from raysim.storage.untrusted_files import UnreadableFileError, check_types, read_json

NAME = "process.json"
LOCK_SECONDS = 2.0
"""Seconds to wait for the lock, which a process that only looks holds for a moment."""


@contextmanager
def sitting(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder while this process works on the run.

    Raises:
        ResultsError: another process is, or the folder cannot be written.
    """
    with writing(folder / NAME):
        file = (folder / NAME).open("ab", buffering=0)
    with file:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    other = holder(folder)
                    raise ResultsError(
                        f"{folder}: process {other.get('process', '?')} on {other.get('host', '?')} is at work on this "
                        f"run. Watch it with: python -m raysim.ui {folder}"
                    ) from error
                time.sleep(0.05)
        with writing(folder / NAME):
            file.truncate(0)
            me = {"process": os.getpid(), "host": socket.gethostname(), "started": time.time()}
            write_whole(file, json.dumps(me).encode())
        yield


def holder(folder: Path) -> dict[str, Any]:
    """Process number, host and start of the process that works or last worked on the run; empty if there is none."""
    try:
        found = read_json(folder / NAME)
        check_types(found, {"process": int, "host": str, "started": (int, float)})
    except (OSError, UnreadableFileError):
        return {}
    return found


def is_held(path: Path) -> bool:
    """Whether a process holds the lock on a file."""
    try:
        with open(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:  # a pipe would block
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # let go again at once: who starts tries for seconds
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
