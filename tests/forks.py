"""One fork server for a session of tests: its Rays are as those that a run starts, with forked workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from raysim.actors.fork_server import ForkServer
from raysim.actors.side_processes import SideProcesses


@cache
def fork_server() -> ForkServer:
    """The server, from the first Ray on that a test starts; the session ends it."""
    server = ForkServer(["raysim.workloads._torch_geometric"])
    server.start()
    return server


@contextmanager
def forked_workers() -> Iterator[None]:
    """A Ray that is started within this context has forked workers, whichever test it is started for.

    As that of a run without a dashboard it has no process that no client task needs: these would read logs and write
    tables that no one reads, as long as the tests take.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)
        with fork_server().serving(), SideProcesses(dashboard=False).held({}):
            yield
