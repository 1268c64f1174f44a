"""A cluster of several raylets on this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from raysim.actors.start_retry import patiently


@contextmanager
def cluster_here(**head: Any) -> Iterator[Cluster]:
    """A cluster with this head in the place of the session's Ray: a process can be connected to one."""
    ray.shutdown()
    with (
        # Not /tmp/ray, where every new Ray would find and join this cluster.
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RAY_TMPDIR", folder)
        # All nodes alike, also those that join after a run has asked for tokens in this process.
        patch.setenv("RAY_AUTH_MODE", os.environ.get("RAY_AUTH_MODE", "disabled"))
        head["include_dashboard"] = False
        cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        try:
            ray.init(address=cluster.address, log_to_driver=False, logging_level=ERROR)
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()
