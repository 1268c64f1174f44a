"""Helper process that ends what a Ray that was started here leaves behind.

Its processes carry its mark in their environment; those that write a title over it have a file of its session open.

Also a program, started beside that Ray: it waits until the launching process is gone, however it ended, and cleans up.
It imports nothing but the standard library, so that it costs no start-up time.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

MARK = "RAYSIM_STARTED_RAY"
"""Environment variable whose value is the mark of one Ray."""
TRIES = 50
PAUSE = 0.02


def new_mark() -> str:
    """Make a mark for the next Ray of this process: its process number and the time in ticks since the last boot."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return f"{os.getpid()}.{int(time.clock_gettime(clock) * os.sysconf('SC_CLK_TCK'))}"


def marked(mark: str) -> list[int]:
    """Numbers of the processes of a mark's Ray; none where there is no /proc."""
    wanted = f"{MARK}={mark}\0".encode()
    launcher, since = mark.split(".")
    session = re.compile(rf"/session_[\d_-]+_{launcher}/")  # Ray names it after the process that starts it
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or is another user's
            if wanted in (entry / "environ").read_bytes() or (
                # An older one is the launching process, or of another Ray whose launcher had the same number.
                int(stat_fields(entry)[19]) >= int(since)
                and any(session.search(str(file.readlink())) for file in (entry / "fd").iterdir())
            ):
                found.append(int(entry.name))
    return found


def stat_fields(entry: Path) -> list[str]:
    """Fields of ``stat`` in a process's folder of /proc, those behind the program's name.

    0 is the state, 1 the parent, 11 and 12 the processor time in ticks, 19 the start in ticks since the machine's.
    """
    return (entry / "stat").read_text().rpartition(")")[2].split()


def end_marked(mark: str) -> None:
    """Kill the processes of a mark's Ray, also those that start meanwhile."""
    for _ in range(TRIES):
        found = [number for number in marked(mark) if number != os.getpid()]
        if not found:
            return
        for number in found:
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
        time.sleep(PAUSE)


def main() -> None:
    """Wait for the end of standard input, whose other end the launching process holds, and clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    end_marked(sys.argv[1])


if __name__ == "__main__":
    main()
