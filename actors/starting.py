"""Starting a Ray, or joining one: what fails there now and then, and is worth another try."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Started = TypeVar("Started")

PASSING = {
    # A raylet gives its agent 15 s to start, then itself up (ray-project/ray#65983): a machine busy with other things.
    "timed out during startup",
    # A head forks a process for everyone who joins from outside, of which some die of gRPC's threads at once
    # (ray-project/ray#63202: 7 in 100), unless the head was started with GRPC_ENABLE_FORK_SUPPORT=0.
    "Starting Ray client server failed",
}
"""Parts of what Ray says then."""
TRIES = 3
PAUSE = 2.0


def patiently(start: Callable[[], Started]) -> Started:
    """What ``start`` gives, called again where it fails with one of Ray's passing errors."""
    for _ in range(TRIES - 1):
        try:
            return start()
        except Exception as error:
            if not any(part in str(error) for part in PASSING):
                raise
        time.sleep(PAUSE)
    return start()
