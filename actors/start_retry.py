"""Retries for passing errors of starting or joining a Ray."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from raysim.actors.own_ray import stat_fields

Started = TypeVar("Started")

PASSING = {
    # A raylet gives its agent 15 s to start, then itself up (ray-project/ray#65983): a machine busy with other things.
    "timed out during startup",
    # A head forks a process for everyone who joins from outside, of which some die of gRPC's threads at once
    # (ray-project/ray#63202: 7 in 100), unless the head was started with GRPC_ENABLE_FORK_SUPPORT=0.
    "Starting Ray client server failed",
}
"""Parts of the messages of Ray's passing errors."""
TRIES = 3
PAUSE = 2.0


def patiently(start: Callable[[], Started]) -> Started:
    """Call ``start``, and call it again where it fails with one of Ray's passing errors."""
    before = _children_of_ray()
    for _ in range(TRIES - 1):
        try:
            return start()
        except Exception as error:
            if not any(part in str(error) for part in PASSING):
                raise
        for process in _children_of_ray() - before:  # Ray leaves its control store and its dashboard behind
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        time.sleep(PAUSE)
    return start()


def _children_of_ray() -> set[int]:
    """This process's children that run a program of Ray's; none where there is no /proc."""
    import ray

    home, found = str(Path(ray.__file__).parent), set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(stat_fields(entry)[1])
            if parent == os.getpid() and home in (entry / "cmdline").read_bytes().decode(errors="replace"):
                found.add(int(entry.name))
        except OSError:  # it has ended meanwhile
            continue
    return found
