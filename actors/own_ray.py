"""A Ray that this process has started: its mark, who cleans up after it, and what has become of its processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from actors import reaper

_PARTS = {"gcs_server": "Ray's control store (gcs_server)", "raylet": "Ray's node manager (raylet)"}
"""Programs of Ray without which a run cannot go on."""


class OwnRay:
    """The Ray that this process starts, marked by its environment; a helper process outlives this one and cleans up."""

    def __init__(self) -> None:
        self.mark = reaper.new_mark()
        os.environ[reaper.MARK] = self.mark
        self._parts: dict[int, str] = {}
        environment = {name: value for name, value in os.environ.items() if name != reaper.MARK}
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, self.mark],
            stdin=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # what ends the terminal's processes must not end it
        )

    def started(self) -> None:
        """Note that Ray is up, so that processes started from now on do not inherit its mark."""
        os.environ.pop(reaper.MARK, None)
        for number in reaper.marked(self.mark):
            name = _program(number)
            if name in _PARTS:
                self._parts[number] = _PARTS[name]

    def dead(self) -> str:
        """Name of a part of Ray that has died; empty if none has."""
        return next((name for number, name in self._parts.items() if state(number) in ("", "Z")), "")

    def frozen(self) -> str:
        """Name of a part of Ray that is stopped (by SIGSTOP, say); empty if none is."""
        return next((name for number, name in self._parts.items() if state(number) == "T"), "")

    def end(self) -> None:
        """End all processes that are left of this Ray."""
        os.environ.pop(reaper.MARK, None)
        reaper.end_marked(self.mark)
        if self._reaper.stdin is not None:
            self._reaper.stdin.close()
        self._reaper.wait()


def state(number: int) -> str:
    """A process's state as the system gives it (R, S, D, T, Z …); empty if it is gone."""
    return next(iter(_fields(number)), "")


def processor_time(number: int) -> int:
    """Processor time of a process in ticks; 0 if it is gone."""
    return sum(map(int, _fields(number)[11:13]))


def _fields(number: int) -> list[str]:
    """What the system says of a process, its state first (reaper.py); nothing if it is gone."""
    try:
        return reaper.stat_fields(Path(f"/proc/{number}"))
    except OSError:
        return []


def _program(number: int) -> str:
    try:
        return Path(Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")).name
    except OSError:
        return ""
