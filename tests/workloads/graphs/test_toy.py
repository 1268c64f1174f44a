from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.graphs.toy import FAMILIES, ToyGraphs, from_networkx
from tests.workloads.conftest import Stream


def as_networkx(graphs: Graphs, number: int) -> networkx.Graph:
    graph = networkx.empty_graph(int(graphs.sizes[number]))
    graph.add_edges_from(graphs.edges[:, graphs.edge_offsets[number] : graphs.edge_offsets[number + 1]].T.tolist())
    return graph


def test_graphs_of_networkx_by_hand() -> None:
    path = networkx.Graph([("b", "a"), ("b", "c")])  # nodes in the order b a c
    alone = networkx.empty_graph(1)
    star = networkx.star_graph(4)
    star.add_edge(4, 4)
    graphs = from_networkx([path, alone, star], np.array([1, 0, 1]), 4)
    assert graphs.sizes.tolist() == [3, 1, 5]
    assert graphs.edges.tolist() == [[0, 0, 0, 0, 0, 0, 4], [1, 2, 1, 2, 3, 4, 4]]
    assert graphs.edge_offsets.tolist() == [0, 2, 2, 7]
    assert graphs.features.argmax(axis=1).tolist() == [2, 1, 1, 0, 3, 1, 1, 1, 2]  # degree 4 shares the column of 3
    assert graphs.features.shape == (9, 4)


def test_clients_differ_in_family_width_and_classes(stream: Stream) -> None:
    federation = ToyGraphs(clients=8).load(stream)
    assert federation.synthetic
    assert [federation.client_name(client) for client in range(8)] == [
        "erdos-renyi", "barabasi-albert", "watts-strogatz", "grid", "tree", "blocks", "erdos-renyi 2",
        "barabasi-albert 2",
    ]  # fmt: skip
    assert len({federation.input_spec(client).input_shape for client in range(6)}) == 6
    assert [federation.input_spec(client).classes for client in range(6)] == [2, 3, 2, 2, 3, 3]
    assert federation.input_spec(6) == federation.input_spec(0)
    assert not np.array_equal(federation.parts[6].graphs.labels, federation.parts[0].graphs.labels)
    for part, family in zip(federation.parts, FAMILIES, strict=False):
        assert len(part.graphs) == 60
        assert (len(part.train), len(part.validation), len(part.test)) == (48, 6, 6)
        counts = np.bincount(part.graphs.labels)
        assert len(counts) == len(part.class_names) == len(family.class_names)
        assert counts.max() - counts.min() <= 1
        assert (part.graphs.features.sum(axis=1) == 1).all()


def test_families_are_what_they_say(stream: Stream) -> None:
    parts = {part.name: part for part in ToyGraphs(clients=6).load(stream).parts}
    for number, label in enumerate(parts["tree"].graphs.labels):
        tree = as_networkx(parts["tree"].graphs, number)
        assert networkx.is_tree(tree)
        if label == 0:
            assert max(dict(tree.degree).values()) <= 3
    preferential = parts["barabasi-albert"].graphs
    grown = preferential.sizes - (preferential.labels + 1)  # nodes that joined, each with class + 1 edges
    assert np.array_equal(preferential.edge_counts, grown * (preferential.labels + 1))
    ring = parts["watts-strogatz"].graphs
    assert np.array_equal(ring.edge_counts, 2 * ring.sizes)
    grid = parts["grid"].graphs
    assert grid.degrees().max() <= 4
    assert grid.degrees()[np.repeat(grid.labels, grid.sizes) == 0].max() <= 3
    blocks = parts["blocks"].graphs
    triangles = [sum(networkx.triangles(as_networkx(blocks, number)).values()) / 3 for number in range(60)]
    means = [np.mean(np.array(triangles)[blocks.labels == label]) for label in range(3)]
    assert means[0] < means[1] < means[2]
    random = parts["erdos-renyi"].graphs
    assert (random.degrees() == 0).any()  # isolated nodes stay


@pytest.mark.parametrize("client", range(5))
def test_classes_can_be_learned_from_degrees(stream: Stream, client: int) -> None:
    """The mean of the node features tells the classes apart; communities (client 5) need more than that."""
    from sklearn.linear_model import LogisticRegression

    part = ToyGraphs(clients=client + 1).load(stream).parts[client]
    graphs = part.graphs
    means = np.add.reduceat(graphs.features, graphs.node_offsets[:-1], axis=0) / graphs.sizes[:, None]
    held = np.concatenate([part.validation, part.test])
    model = LogisticRegression(C=100, max_iter=1000).fit(means[part.train], graphs.labels[part.train])
    assert model.score(means[held], graphs.labels[held]) >= 0.75


def test_it_depends_on_its_streams_only(stream: Stream) -> None:
    one = ToyGraphs().load(stream)
    two = ToyGraphs(clients=2).load(stream)
    other = ToyGraphs().load(lambda purpose: np.random.default_rng(3))
    for name in ("features", "edges", "node_offsets", "edge_offsets", "labels"):
        assert np.array_equal(getattr(one.parts[1].graphs, name), getattr(two.parts[1].graphs, name))
    assert np.array_equal(one.parts[1].test, two.parts[1].test)
    assert not np.array_equal(one.parts[1].graphs.labels, other.parts[1].graphs.labels)


def test_shares_must_leave_graphs_to_train_on() -> None:
    options: dict[str, Any] = {"test_share": 0.6, "validation_share": 0.4}
    with pytest.raises(WorkloadError, match="leaves nothing to train on"):
        ToyGraphs(**options)
