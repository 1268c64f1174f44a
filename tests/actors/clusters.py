"""A cluster of several raylets on this machine, and the actors of each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from typing import Any

import pytest
import ray
from ray._private.state import actors
from ray.cluster_utils import Cluster

from raysim.actors.start_retry import patiently
from tests.forks import forked_workers


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
        with forked_workers():
            cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        try:
            ray.init(address=cluster.address, log_to_driver=False, logging_level=ERROR)
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def add_node(cluster: Cluster, **node: Any) -> Any:
    """One more node, with forked workers as the head has."""
    with forked_workers():
        return patiently(lambda: cluster.add_node(**node))


def actors_of(node: Any) -> set[int]:
    """Numbers of the processes of a node's actors: forked ones are no children of its raylet."""
    alive = actors(actor_state_name="ALIVE").values()
    return {found["Pid"] for found in alive if found["Address"]["NodeID"] == node.node_id}
