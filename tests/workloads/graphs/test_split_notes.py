"""Notes on what a cut of a graph leaves to its clients, and clients that it leaves little to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from raysim.running.simulation import run
from raysim.workloads.graphs.node_federation import NodeFederation
from raysim.workloads.graphs.node_graph import TEST, TRAIN, UNUSED, VALIDATION, node_graph
from raysim.workloads.graphs.split_notes import notes_of
from tests.made_subgraphs import rings
from tests.small_runs import small_run


def test_what_a_cut_leaves_to_clients_is_said() -> None:
    """Client 1 has no node to test and none of class 1 to train on, and client 0's are of class 0 alone."""
    edges = np.array([[0, 2], [2, 4], [0, 1], [3, 1]]).T
    graph = node_graph("hand", np.arange(12).reshape(6, 2), edges, np.array([0, 0, 1, 0, 1, 1]))
    roles = np.array([TRAIN, TRAIN, TEST, UNUSED, VALIDATION, UNUSED], np.int8)
    federation = NodeFederation(graph, np.array([0, 1, 0, 1, 0, 1]), roles, 2)
    assert list(notes_of(federation)) == [
        "hand: 1 of 4 edges join nodes of two clients and are left out",
        "hand: 1 of 6 nodes have no neighbor in their client's graph",
        "hand: 1 of 2 clients have no node to be tested with (client 1, say); accuracies are means over the others",
        "hand: 2 of 2 clients have no training node of some class",
    ]


def test_a_client_without_edges_or_test_nodes_takes_part(tmp_path: Path) -> None:
    """Client 2 has every sixth node of the first ring, so no edge, and none of its nodes is tested."""
    owners = np.where(np.arange(60) >= 30, 1, np.where(np.arange(60) % 6 == 0, 2, 0))
    (tmp_path / "cut.txt").write_text("\n".join(map(str, owners)))
    base = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 3, "model.name": "gcn"}
    base |= {"workload.partition": "file", "workload.owners": str(tmp_path / "cut.txt"), "schedule.rounds": 1}
    for method in ("fedavg", "fedgta"):
        result = run(small_run(tmp_path / method, base, method__name=method))
        table = result.clients.set_index("client")
        assert np.isfinite(table["train_loss"]).all() and np.isnan(table["accuracy"][2])
        assert result.rounds["accuracy"].iloc[-1] == pytest.approx(table["accuracy"][[0, 1]].mean())
        if method == "fedgta":
            assert table["confidence"][2] > 0
