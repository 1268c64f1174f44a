"""A Ray that this process has started: its mark, what has become of its processes, and who ends them.

They carry the mark in their environment; those that write a title over it have a file of the Ray's session open.

Also a program, started beside that Ray: it waits until the launching process is gone, however it ended, and cleans up.
It imports nothing but the standard library, so that it costs no start-up time.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raysim.actors.fork_server import ForkServer

MARK = "RAYSIM_STARTED_RAY"
"""Environment variable whose value is the mark of one Ray."""
SESSION = b"--session_dir="
"""The raylet's option that names the folder of its session."""
SPILLED = "ray_spilled_objects_*"
"""Folders in there with objects for which the object store had no room; a Ray that ends by itself empties them."""
TRIES = 50
PAUSE = 0.02
_PARTS = {"gcs_server": "Ray's control store (gcs_server)", "raylet": "Ray's node manager (raylet)"}
"""Programs of Ray without which a run cannot go on."""
DASHBOARD, AUTOSCALER, LOGS = "dashboard/dashboard.py", "/monitor.py", "/log_monitor.py"
SIDE = (DASHBOARD, AUTOSCALER, LOGS)
"""The ends of the paths of Ray's programs that no client task needs; Ray starts each once."""


class OwnRay:
    """The Ray that this process starts, marked by its environment; a helper process outlives this one and cleans up.

    Args:
        forks: the process from which its workers are forked, which ends with this Ray.
    """

    def __init__(self, forks: ForkServer | None = None) -> None:
        self.forks = forks
        environment = {name: value for name, value in os.environ.items() if name != MARK}
        # The process number, and the time in ticks since the last boot.
        clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        self.mark = f"{os.getpid()}.{int(time.clock_gettime(clock) * os.sysconf('SC_CLK_TCK'))}"
        os.environ[MARK] = self.mark
        self._parts: dict[int, str] = {}
        self._side: set[int] = set()
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, self.mark],
            stdin=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # what ends the terminal's processes must not end it
        )

    def started(self) -> None:
        """Note that Ray is up, so that processes started from now on do not inherit its mark."""
        os.environ.pop(MARK, None)
        for number in marked(self.mark):
            with suppress(OSError):
                words = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
                if (name := Path(words[0].decode(errors="replace")).name) in _PARTS:
                    self._parts[number] = _PARTS[name]
                folder = next((word for word in words if word.startswith(SESSION)), b"").removeprefix(SESSION)
                if name == "raylet" and folder and self._reaper.stdin is not None:
                    self._reaper.stdin.write(folder)
                    self._reaper.stdin.flush()
        self._side = set(side_processes())

    def end_side(self) -> None:
        """End its side processes by force: they have nothing to save, and the autoscaler takes a second to end."""
        for number in self._side & side_processes().keys():
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)

    def dead(self) -> str:
        """Says which part of Ray has died; empty if none has."""
        return next((f"{name} has died on this machine" for name in self._parts_in("", "Z")), "")

    def frozen(self) -> str:
        """Says which part of Ray is stopped (by SIGSTOP, say); empty if none is."""
        return next((f"{name} is frozen on this machine" for name in self._parts_in("T")), "")

    def _parts_in(self, *states: str) -> list[str]:
        return [name for number, name in self._parts.items() if state(number) in states]

    def end(self) -> None:
        """End all processes that are left of this Ray."""
        os.environ.pop(MARK, None)
        _end_marked(self.mark)
        if self.forks is not None:
            self.forks.end()
        if self._reaper.stdin is not None:
            self._reaper.stdin.close()
        self._reaper.wait()


def state(number: int) -> str:
    """A process's state as the system gives it (R, S, D, T, Z …); empty if it is gone."""
    with suppress(OSError):
        return stat_fields(Path(f"/proc/{number}"))[0]
    return ""


def processor_time(number: int) -> int:
    """Processor time of a process in ticks; 0 if it is gone."""
    with suppress(OSError):
        return sum(map(int, stat_fields(Path(f"/proc/{number}"))[11:13]))
    return 0


def stat_fields(entry: Path) -> list[str]:
    """Fields of ``stat`` in a process's folder of /proc, those behind the program's name.

    0 is the state, 1 the parent, 11 and 12 the processor time in ticks, 19 the start in ticks since the machine's.
    """
    return (entry / "stat").read_text().rpartition(")")[2].split()


def children_of_ray() -> dict[int, list[str]]:
    """Command lines of this process's children that run a program of Ray's; none where there is no /proc."""
    import ray

    home, found = str(Path(ray.__file__).parent), {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            if int(stat_fields(entry)[1]) == os.getpid():
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if any(home in word for word in words):
                    found[int(entry.name)] = words
    return found


def side_processes() -> dict[int, str]:
    """This process's children that run one of Ray's programs that no client task needs: number → program."""
    return {
        number: program
        for number, words in children_of_ray().items()
        for program in SIDE
        if any(word.endswith(program) for word in words)
    }


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


def _end_marked(mark: str) -> None:
    """Kill the processes of a mark's Ray, also those that start meanwhile.

    Two looks in a row must find none: between fork and exec a process does not show its mark.
    """
    looks = 0
    for _ in range(TRIES):
        found = [number for number in marked(mark) if number != os.getpid()]
        looks = 0 if found else looks + 1
        if looks == 2:
            return
        for number in found:
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
        time.sleep(PAUSE)


def main() -> None:
    """Wait for the end of standard input, whose other end the launching process holds, and clean up.

    All that comes in there is the folder of the Ray's session.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    session = sys.stdin.buffer.read()
    _end_marked(sys.argv[1])
    if session:
        for spilled in Path(os.fsdecode(session)).glob(SPILLED):
            shutil.rmtree(spilled, ignore_errors=True)


if __name__ == "__main__":
    main()
