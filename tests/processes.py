"""Processes that tests look for, wait for or kill."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from raysim.actors.own_ray import stat_fields
from tests.watch import Watch

Found = TypeVar("Found")


def within(seconds: float, condition: Callable[[], Found], pause: float = 0.02) -> Found:
    """What a condition gives once it is true, or at the latest after ``seconds``; asked again after every pause."""
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(pause)
    return found


def marked(*marks: str) -> list[str]:
    """Command lines of the processes that have all of these in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (entry / "environ").read_bytes()
            if all(mark.encode() in environment for mark in marks):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def processes(title: str) -> list[int]:
    """Numbers of our processes whose title starts so; Ray titles an actor after the method that it runs just now."""
    found, start = [], title.encode()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError), Path(entry.path, "cmdline").open("rb") as file:
                if file.read(len(start)) == start:
                    found.append(int(entry.name))
    return sorted(filter(_is_ours, found))


def parent(process: int) -> int:
    """Number of a process's parent; 0 if it is gone."""
    with suppress(OSError):
        return int(stat_fields(Path(f"/proc/{process}"))[1])
    return 0


def _is_ours(process: int) -> bool:
    """Whether it comes from this process: there may be other Rays on the machine."""
    while process and process != os.getpid():
        process = parent(process)
    return process != 0


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
        for process in within(120, lambda: processes(self.title)[:1], pause=0.002):
            os.kill(process, signal.SIGKILL)
            self.killed.append(process)
