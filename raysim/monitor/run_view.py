"""A run seen by its folder alone: what it is and whether it goes on, for the live page."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

from raysim.monitor import status_file
from raysim.storage import process_lock
from raysim.storage.run_folder import is_run
from raysim.storage.run_record import read_run_config, read_summary
from raysim.storage.run_title import run_title

SYNTHETIC = "the data is synthetic: made up for tests, its accuracy says nothing about real data"


class Watched:
    """The run in a folder, finished or not.

    Raises:
        ResultsError: the folder holds no run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.config = read_run_config(folder)

    def live(self) -> dict[str, Any]:
        """The status, corrected where the run died without saying so.

        Beside the states of :mod:`raysim.monitor.status_file`: ``died`` (it was at work, and nobody is any more),
        ``gone`` (with its folder: it failed before its first round),
        ``unknown`` (nothing is known of how it ended, or whether it began).
        """
        if not is_run(self.folder):
            return {"state": "gone"}
        found = status_file.load(self.folder)
        held = process_lock.is_held(self.folder / process_lock.LAUNCHER)
        if held and found.get("started", 0.0) < process_lock.holder(self.folder).get("started", 0.0):
            # The status is that of an earlier process; the driver of this one is still on its way.
            return found | {"state": "preparing", "message": "", "current": None, "preparing": None}
        if not found:
            driven = held or process_lock.is_held(self.folder / process_lock.DRIVER)
            return {"state": "preparing" if driven else "finished" if self.summary() else "unknown"}
        if found.get("state") in status_file.LIVE and not held and not self._driven():
            return found | {"state": "died"}
        return found

    def summary(self) -> dict[str, Any]:
        """The contents of ``summary.json``; empty before the end."""
        return read_summary(self.folder)

    def title(self) -> str:
        """Method and data."""
        return run_title(self.config, self.summary())

    def _driven(self) -> bool:
        """Whether a process drives the rounds. One on another machine of a shared folder counts by its writing."""
        if process_lock.is_held(self.folder / process_lock.DRIVER):
            return True
        if process_lock.holder(self.folder).get("host") == socket.gethostname():
            return False  # locks of this machine are always seen
        try:
            (self.folder / process_lock.DRIVER).stat()
            return time.time() - (self.folder / status_file.NAME).stat().st_mtime < 5.0
        except OSError:
            return False
