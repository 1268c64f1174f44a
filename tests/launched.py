"""A run on a Ray of its own, started by the command line as a process group of its own, and what Ray runs for it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from raysim.actors.own_ray import MARK
from tests.processes import within

ROOT = Path(__file__).parents[1]


class Launched:
    """``python -m raysim.launch WORDS``.

    Args:
        folder: where it starts, and from where modules are imported too; what it says is in ``said.txt`` there.
        shared_memory: megabytes of /dev/shm; 0: the machine's.
    """

    def __init__(self, folder: Path, words: Sequence[str], shared_memory: int = 0) -> None:
        self.log = folder / "said.txt"
        command = [sys.executable, "-m", "raysim.launch", *words]
        if shared_memory:
            shell = f'mount -t tmpfs -o size={shared_memory}m tmpfs /dev/shm && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", shell, "sh", *command]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": f"{ROOT}:{folder}"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def has_two_rounds(self, seconds: float) -> bool:
        """Wait until it is in its third round; False: it has ended, or takes longer than ``seconds``."""
        within(seconds, lambda: "round 2/" in self.log.read_text() or self.process.poll() is not None, pause=0.1)
        return "round 2/" in self.log.read_text() and self.process.poll() is None

    def processes(self, part: str = "") -> dict[int, str]:
        """All that Ray runs for it, by its mark or a file of its session, of which ``part`` is in the program."""
        mark, session = f"{MARK}={self.process.pid}.", re.compile(rf"/session_[\d_-]+_{self.process.pid}/")
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                files = [str(file.readlink()) for file in (entry / "fd").iterdir()]
                if mark.encode() in (entry / "environ").read_bytes() or any(map(session.search, files)):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        found.pop(self.process.pid, None)
        return {process: line for process, line in found.items() if part in line.split(" --")[0]}

    def signal(self, part: str, number: signal.Signals) -> list[int]:
        """Send a signal to every process of a part of Ray, or to the launching process (""); their numbers."""
        found = [*self.processes(part)] if part else [self.process.pid]
        for process in found:
            with suppress(ProcessLookupError):  # ended by itself meanwhile
                os.kill(process, number)
        return found

    def nothing_is_left(self, seconds: float) -> bool:
        """Whether all of Ray is gone within that time."""
        return within(seconds, lambda: not self.processes(), pause=0.1)

    def end(self) -> bool:
        """Kill it; whether that ends its Ray as well."""
        self.process.kill()
        self.process.wait()
        return self.nothing_is_left(30)
