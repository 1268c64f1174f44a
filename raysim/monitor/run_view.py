"""Whether a run goes on, seen by its folder alone, for the live page."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

from raysim.monitor import status_file
from raysim.storage import process_lock
from raysim.storage.run_folder import is_run
from raysim.storage.run_record import read_summary


def live_status(folder: Path) -> dict[str, Any]:
    """The status of the run in a folder, corrected where the run died without saying so.

    Beside the states of :mod:`raysim.monitor.status_file`: ``died`` (it was at work, and no process is now),
    ``gone`` (with its folder: it failed before its first round),
    ``unknown`` (nothing is known of how it ended, or whether it began).
    """
    if not is_run(folder):
        return {"state": "gone"}
    found = status_file.load(folder)
    held = process_lock.is_held(folder / process_lock.LAUNCHER)
    if held and found.get("started", 0.0) < process_lock.holder(folder).get("started", 0.0):
        # The status is that of an earlier process; the driver of this one is still on its way.
        return found | {"state": "preparing", "message": "", "current": None, "preparing": None}
    if not found:
        driven = held or process_lock.is_held(folder / process_lock.DRIVER)
        return {"state": "preparing" if driven else "finished" if read_summary(folder) else "unknown"}
    if found.get("state") in status_file.LIVE and not held and not _driven(folder):
        return found | {"state": "died"}
    return found


def _driven(folder: Path) -> bool:
    """Whether a process drives the rounds. One on another machine of a shared folder counts by its writing."""
    if process_lock.is_held(folder / process_lock.DRIVER):
        return True
    if process_lock.holder(folder).get("host") == socket.gethostname():
        return False  # locks of this machine are always seen
    try:
        (folder / process_lock.DRIVER).stat()
        return time.time() - (folder / status_file.NAME).stat().st_mtime < 5.0
    except OSError:
        return False
