"""Ends what a Ray that was started here leaves behind: all processes that carry its mark in their environment.

Also a program, started beside that Ray: it waits until the launching process is gone, however it ended, and cleans up.
It imports nothing but the standard library, so that it costs no start-up time.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

MARK = "RAYSIM_STARTED_RAY"
"""The environment variable; its value names one Ray."""
TRIES = 50
PAUSE = 0.02


def marked(mark: str) -> list[int]:
    """Numbers of the processes that carry the mark; none where there is no /proc."""
    wanted = f"{MARK}={mark}\0".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or is another user's
            if wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def end_marked(mark: str) -> None:
    """Kill them, also those that start meanwhile."""
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
