from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.workloads.graphs.graph_set import Graphs, offsets, spans, undirected
from tests.made_graphs import graphs_of


def integers(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@st.composite
def graph_sets(draw: st.DrawFn, spectra: bool = False) -> Graphs:
    """Up to 6 graphs of up to 5 nodes with any set of edges, self-loops too; feature and eigenvalue i belong to node i,
    eigenvectors are numbered."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    chosen = [
        sorted(draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).map(lambda p: (min(p), max(p))))))
        for n in sizes
    ]
    nodes = sum(sizes)
    features = np.arange(2 * nodes, dtype=np.float32).reshape(nodes, 2)
    graphs = graphs_of(*zip(sizes, chosen, strict=True), features=features, labels=np.arange(len(sizes)) % 3)
    if not spectra:
        return graphs
    square = sum(size**2 for size in sizes)
    return replace(
        graphs, eigenvalues=np.arange(nodes, dtype=np.float32), eigenvectors=np.arange(square, dtype=np.float32)
    )


def parts(graphs: Graphs, number: int) -> tuple[object, ...]:
    """Everything one graph has, cut out with plain slices."""
    nodes = slice(*graphs.node_offsets[number : number + 2].tolist())
    edges = slice(*graphs.edge_offsets[number : number + 2].tolist())
    start = int((graphs.sizes[:number] ** 2).sum())
    return (
        graphs.features[nodes].tolist(),
        graphs.edges[:, edges].tolist(),
        int(graphs.labels[number]),
        graphs.eigenvalues[nodes].tolist(),
        graphs.eigenvectors[start : start + int(graphs.sizes[number]) ** 2].tolist(),
    )


def test_spans_by_hand() -> None:
    starts = integers([0, 3, 3, 5, 9])
    assert spans(starts, integers([2, 0, 1, 2])).tolist() == [3, 4, 0, 1, 2, 3, 4]
    assert spans(starts, integers([1])).tolist() == []
    assert spans(starts, integers([])).tolist() == []
    assert offsets(integers([3, 0, 2, 4])).tolist() == [0, 3, 3, 5, 9]
    assert offsets(integers([])).tolist() == [0]


@settings(deadline=None, max_examples=100)
@given(graphs=graph_sets(spectra=True), data=st.data())
def test_a_subset_has_the_graphs_that_were_chosen(graphs: Graphs, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8))
    subset = graphs.subset(integers(chosen))
    assert len(subset) == len(chosen)
    assert [parts(subset, place) for place in range(len(chosen))] == [parts(graphs, number) for number in chosen]
    assert subset.vector_offsets[-1] == len(subset.eigenvectors)


@settings(deadline=None, max_examples=50)
@given(graphs=graph_sets())
def test_degrees_are_those_of_the_adjacency_matrix(graphs: Graphs) -> None:
    expected: list[int] = []
    for number, size in enumerate(graphs.sizes.tolist()):
        adjacency = np.zeros((size, size), dtype=np.int64)
        first, second = graphs.edges[:, graphs.edge_offsets[number] : graphs.edge_offsets[number + 1]]
        adjacency[first, second] = adjacency[second, first] = 1
        expected += adjacency.sum(axis=0).tolist()
    assert graphs.degrees().tolist() == expected


def test_a_subset_is_a_copy_and_nothing_may_be_chosen() -> None:
    graphs = graphs_of((2, [(0, 1)]), (1, []))
    copy = graphs.subset(integers([0, 1]))
    copy.features[0] = 7
    assert graphs.features[0] == 1
    empty = graphs.subset(integers([]))
    assert (len(empty), empty.features.shape, empty.edges.shape) == (0, (0, 1), (2, 0))
    with pytest.raises(IndexError):
        graphs.subset(integers([2]))


def test_attributes_of_both_directions_by_hand() -> None:
    # Lines: 2→1 twice (the first counts), 1→2, 3→0 alone (it is 0→3 too), a loop at 1. In order: 0-3, 1-1, 1-2.
    directed = np.array([[2, 1, 2, 3, 1], [1, 2, 1, 0, 1]])
    values = np.array([[1], [2], [3], [4], [5]], np.float32)
    edges, attributes = undirected(directed, 4, values)
    assert edges.tolist() == [[0, 1, 1], [3, 1, 2]]
    assert attributes[:, :, 0].tolist() == [[4, 4], [5, 5], [2, 1]]
    assert undirected(directed, 4)[1].shape == (0, 2, 0)
    assert undirected(directed[:, :0], 4, values[:0])[1].shape == (0, 2, 1)
