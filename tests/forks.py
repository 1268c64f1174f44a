"""One fork server for a session of tests: its Rays have forked workers, as those that a run starts have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from raysim.actors.fork_server import ForkServer


@cache
def fork_server() -> ForkServer:
    """The server, from the first Ray on that a test starts; the session ends it."""
    server = ForkServer(["raysim.workloads._torch_geometric"])
    server.start()
    return server


@contextmanager
def forked_workers() -> Iterator[None]:
    """A Ray that is started within this context has forked workers, whichever test it is started for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)
        with fork_server().serving():
            yield
