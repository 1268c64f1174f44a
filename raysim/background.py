"""``--detach``: the run in a process of its own, which outlives the terminal and the process that launched it.

The process has its own session, so neither Ctrl-C nor the end of the terminal reaches it, no standard input, and writes
what a terminal would show to ``output.log`` in the run's folder. ``python -m raysim.background FOLDER OPTIONS`` is what
the launching process starts; it is not meant to be typed.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from raysim import sitting, status
from raysim.ending import FAILED, FINISHED, short
from raysim.launch import reported, work
from raysim.options import parse

OUTPUT = "output.log"
PAUSE = 0.05
"""Seconds between two looks at the process that starts."""


def start(folder: Path, words: Sequence[str]) -> int:
    """Start the run of a prepared folder in the background, and wait until it is under way.

    Until then what the process says is shown here, and Ctrl-C ends it.

    Args:
        words: the command line that the folder was prepared for.

    Returns:
        0 once it is under way; its own exit code if it ends before that.
    """
    # For this user alone, as the address of a page may be in it, with what lets a browser in.
    log = os.open(folder / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with (folder / OUTPUT).open(encoding="utf-8", errors="replace") as output:
        output.seek(0, io.SEEK_END)
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "raysim.background", str(folder), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)
        interrupts = 0
        while process.poll() is None and (interrupts or not _under_way(folder, process.pid)):
            try:
                sys.stderr.write(output.read())
                sys.stderr.flush()
                time.sleep(PAUSE)
            except KeyboardInterrupt:
                interrupts += 1
                process.send_signal(signal.SIGINT)
        sys.stderr.write(output.read())
    code = process.poll()
    if code is None:
        where = short(folder)
        print(
            f"{where} goes on in the background as process {process.pid}\n"
            f"  watch it:    python -m raysim.attach {where}\n"
            f"  stop it:     python -m raysim.attach --stop {where}\n"
            f"  its output:  {where}/{OUTPUT}",
            flush=True,
        )
        return FINISHED
    if code < 0:
        print(f"raysim: the background process was ended by {signal.Signals(-code).name}", file=sys.stderr)
        return FAILED
    return code


def _under_way(folder: Path, process: int) -> bool:
    """Whether that process has loaded the data and found places for the clients."""
    holder = sitting.holder(folder)
    if holder.get("process") != process:
        return False
    found = status.read(folder)
    return found.get("started", 0.0) >= holder["started"] and bool(found.get("plan"))


def main(arguments: Sequence[str] | None = None) -> int:
    """The background process."""
    place, *words = sys.argv[1:] if arguments is None else arguments
    folder = Path(place)
    return reported(lambda: work(parse(words), folder, lambda: _under_way(folder, os.getpid())))


if __name__ == "__main__":
    sys.exit(main())
