"""Spectra worked out by hand, identities, and independence of a graph's bits from everything but the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.workloads.graphs import spectra
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.graphs.spectra import Laplacian, compute_spectra
from tests.made_graphs import Edge, graphs_of, path, ring

K3, P3 = ring(3), path(3)


def solved(found: Graphs, laplacian: Laplacian = "normalized") -> Graphs:
    return compute_spectra([found], laplacian, cache=None)[0]


def parts(found: Graphs, graph: int) -> tuple[Any, Any]:
    """(λ [n], U [n, n]) of one graph."""
    one = found.subset(np.array([graph]))
    return one.eigenvalues, one.eigenvectors.reshape(len(one.eigenvalues), -1)


@pytest.mark.parametrize(
    ("graph", "normalized", "combinatorial"),
    [
        (K3, [0, 1.5, 1.5], [0, 3, 3]),
        (P3, [0, 1, 2], [0, 1, 3]),
        ((1, []), [0], [0]),
        ((2, []), [0, 0], [0, 0]),
        ((2, [(0, 1)]), [0, 2], [0, 2]),
        ((3, [(0, 2)]), [0, 0, 2], [0, 0, 2]),  # with an isolated node in the middle
        ((4, [(0, 1), (2, 3)]), [0, 0, 2, 2], [0, 0, 2, 2]),
        ((1, [(0, 0)]), [0], [0]),  # a self-loop alone: A = D = 1
        # A self-loop at one end: A = [[1, 1], [1, 0]], D = (2, 1), L = [[1/2, −1/√2], [−1/√2, 1]]: trace 3/2,
        # determinant 0.
        ((2, [(0, 0), (0, 1)]), [0, 1.5], [0, 2]),
        ((4, [(0, 1), (0, 2), (0, 3)]), [0, 1, 1, 2], [0, 1, 1, 4]),  # a star
        ((4, [(0, 1), (1, 2), (2, 3), (0, 3)]), [0, 1, 1, 2], [0, 2, 2, 4]),  # a ring: 1 − cos, 2 − 2 cos
    ],
)
def test_spectra_worked_out_by_hand(
    graph: tuple[int, list[Edge]], normalized: list[float], combinatorial: list[float]
) -> None:
    found = solved(graphs_of(graph))
    np.testing.assert_allclose(found.eigenvalues, normalized, atol=1e-7)
    np.testing.assert_allclose(solved(graphs_of(graph), "combinatorial").eigenvalues, combinatorial, atol=1e-6)
    assert found.eigenvalues.dtype == found.eigenvectors.dtype == np.float32
    assert found.eigenvalues.min() >= 0 and found.eigenvalues.max() <= 2


def test_eigenvectors_worked_out_by_hand() -> None:
    """P3, normalized: λ = 0 has D^{1/2} 1 = (1, √2, 1)/2, λ = 1 has (1, 0, −1)/√2, λ = 2 has (−1, √2, −1)/2: of each,
    the (first) largest entry is positive."""
    _, vectors = parts(solved(graphs_of(P3)), 0)
    root = np.sqrt(0.5)
    np.testing.assert_allclose(vectors, np.array([[0.5, root, -0.5], [root, 0, root], [0.5, -root, -0.5]]), atol=1e-7)


def test_a_set_without_graphs_and_many_sets() -> None:
    found = compute_spectra([graphs_of(), graphs_of(K3), graphs_of(P3, K3)], "normalized", cache=None)
    assert [len(one) for one in found] == [0, 1, 2]
    assert not found[0].has_spectra
    np.testing.assert_array_equal(found[2].eigenvalues[3:], found[1].eigenvalues)
    assert found[1].labels is not None and found[1].features.shape == (3, 1)


# -- identities on any graphs ---------------------------------------------------------------------------------------


@st.composite
def any_graph(draw: Any, most: int = 9) -> tuple[int, list[Edge]]:
    nodes = draw(st.integers(1, most))
    pairs = [(i, j) for i in range(nodes) for j in range(i, nodes)]  # i = j: self-loops
    return nodes, [pair for pair in pairs if draw(st.booleans())]


def plain_laplacian(graph: tuple[int, Sequence[Edge]], laplacian: str) -> Any:
    """METHODS' formula, one entry after the other."""
    nodes, edges = graph
    adjacency = np.zeros((nodes, nodes))
    for i, j in edges:
        adjacency[i, j] = adjacency[j, i] = 1
    if laplacian == "combinatorial":
        adjacency = adjacency + np.eye(nodes)
    degrees = adjacency.sum(axis=1)
    if laplacian == "combinatorial":
        return np.diag(degrees) - adjacency
    found = np.zeros((nodes, nodes))
    for i in range(nodes):
        for j in range(nodes):
            if degrees[i] and degrees[j]:
                found[i, j] = (i == j) - adjacency[i, j] / np.sqrt(degrees[i] * degrees[j])
    return found


@settings(deadline=None, max_examples=40)
@given(st.lists(any_graph(), min_size=1, max_size=6), st.sampled_from(["normalized", "combinatorial"]))
def test_eigenvectors_are_orthonormal_and_give_the_laplacian_back(
    made: list[tuple[int, list[Edge]]], laplacian: Laplacian
) -> None:
    found = solved(graphs_of(*made), laplacian)
    for index, graph in enumerate(made):
        values, vectors = (part.astype(np.float64) for part in parts(found, index))
        assert (np.diff(values) >= 0).all()
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(graph[0]), atol=1e-6)
        rebuilt = vectors @ np.diag(values) @ vectors.T
        np.testing.assert_allclose(rebuilt, plain_laplacian(graph, laplacian), atol=1e-6 * max(1, values.max()))


@settings(deadline=None, max_examples=30)
@given(any_graph(), st.randoms(use_true_random=False))
def test_renumbered_nodes_have_the_same_eigenvalues_and_renumbered_projections(
    graph: tuple[int, list[Edge]], random: Any
) -> None:
    nodes, edges = graph
    place = list(range(nodes))
    random.shuffle(place)
    moved = (nodes, [(min(place[i], place[j]), max(place[i], place[j])) for i, j in edges])
    values, vectors = parts(solved(graphs_of(graph)), 0)
    other_values, other_vectors = parts(solved(graphs_of(moved)), 0)
    np.testing.assert_allclose(other_values, values, atol=1e-6)
    # U itself is free within a repeated eigenvalue; U f(λ) Uᵀ is not, and that is what the model uses.
    filtered, other = (u @ np.diag(np.exp(-v)) @ u.T for v, u in ((values, vectors), (other_values, other_vectors)))
    np.testing.assert_allclose(other[np.ix_(place, place)], filtered, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(st.lists(any_graph(40), min_size=1, max_size=8), st.integers(0, 7), st.sampled_from([1.0, 3000.0, 1e9]))
def test_the_bits_of_a_graph_depend_on_that_graph_only(
    made: list[tuple[int, list[Edge]]], chosen: int, cost: float
) -> None:
    chosen %= len(made)
    alone = parts(solved(graphs_of(made[chosen])), 0)
    with pytest.MonkeyPatch.context() as patch, threadpoolctl.threadpool_limits(2):
        patch.setattr(spectra, "COST", cost)
        among = parts(solved(graphs_of(*made)), chosen)
    for one, other in zip(alone, among, strict=True):
        np.testing.assert_array_equal(one, other)


# -- how the work is cut --------------------------------------------------------------------------------------------


def test_pieces_are_cut_by_cost_in_order_of_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs n³ + 1000: 1027 for three nodes, 1001 for one, 9000 for 20 nodes. With 2100 a piece: two small graphs."""
    monkeypatch.setattr(spectra, "COST", 2100.0)
    pieces = spectra.cut(graphs_of(K3, (20, []), (1, []), P3))
    assert [piece.tolist() for piece in pieces] == [[2, 0], [3], [1]]


def test_all_sets_go_to_the_pool_at_once_and_may_be_computed_anywhere() -> None:
    calls: list[tuple[str, int]] = []

    def backwards(function: Callable[[Any], Any], items: Sequence[Any], label: str) -> list[Any]:
        calls.append((label, len(items)))
        return [function(item) for item in reversed(items)][::-1]

    found = compute_spectra([graphs_of(K3, P3), graphs_of((2, [(0, 1)]))], "normalized", backwards, None)
    assert calls == [("eigendecompositions", 2)]
    np.testing.assert_allclose(found[0].eigenvalues, [0, 1.5, 1.5, 0, 1, 2], atol=1e-7)
    np.testing.assert_allclose(found[1].eigenvalues, [0, 2], atol=1e-7)
