"""Processes of the tests' own Ray, and an observer that kills one of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

from tests.watch import Watch


def processes(title: str) -> list[int]:
    """Numbers of our processes whose title starts so; Ray titles an actor after the method that it runs just now."""
    parents: dict[int, int] = {}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if line.startswith(title):
                found.append(int(entry.name))
    return sorted(process for process in found if _descends(process, parents))


def _descends(process: int, parents: dict[int, int]) -> bool:
    """Whether it comes from this process: there may be other Rays on the machine."""
    while process in parents:
        process = parents[process]
        if process == os.getpid():
            return True
    return False


class Killer(Watch):
    """An observer that kills one process with a title, once, while that process is at work in a given round."""

    def __init__(self, title: str, round: int) -> None:
        super().__init__()
        self.title, self.deadly_round = title, round
        self.killed: list[int] = []
        self._thread: threading.Thread | None = None

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        if round == self.deadly_round and self._thread is None:
            self._thread = threading.Thread(target=self._kill)
            self._thread.start()

    def _kill(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for process in processes(self.title)[:1]:
                os.kill(process, signal.SIGKILL)
                self.killed.append(process)
                return
            time.sleep(0.002)
