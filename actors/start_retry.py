"""Retries for passing errors of starting or joining a Ray."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from raysim.actors.own_ray import children_of_ray

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
    before = children_of_ray().keys()
    for _ in range(TRIES - 1):
        try:
            return start()
        except Exception as error:
            if not any(part in str(error) for part in PASSING):
                raise
        for process in children_of_ray().keys() - before:  # Ray leaves its control store and its dashboard behind
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)  # one that is held (side_processes.py) hears no other
        time.sleep(PAUSE)
    return start()
