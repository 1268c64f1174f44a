from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.workloads.graphs.structural_encodings import BLOCK, random_walks, return_probabilities, structure_encodings
from tests.made_graphs import Edge, batch_of, path, ring


def probabilities(nodes: int, edges: Sequence[Edge], steps: int) -> list[list[float]]:
    found: list[list[float]] = return_probabilities(
        nodes, np.array(edges, np.int64).reshape(-1, 2).T.tobytes(), steps
    ).tolist()
    return found


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        # From an end: to the middle, then back with probability 1/2, at every even step. From the middle: always back.
        (path(3)[1], [[0, 1 / 2, 0, 1 / 2, 0], [0, 1, 0, 1, 0], [0, 1 / 2, 0, 1 / 2, 0]]),
        # r_k+1 = (1 - r_k) / 2.
        (ring(3)[1], [[0, 1 / 2, 1 / 4, 3 / 8, 5 / 16]] * 3),
    ],
)
def test_three_nodes_by_hand(edges: list[Edge], expected: list[list[float]]) -> None:
    np.testing.assert_allclose(probabilities(3, edges, 5), expected, atol=1e-7)


def test_self_loops_and_nodes_without_neighbors() -> None:
    # Node 0 has a loop and node 1: it stays with 1/2; in two steps 1/2·1/2 + 1/2·1 = 3/4. Node 1 must go to 0.
    rows = probabilities(3, [(0, 0), (0, 1)], 2)
    assert rows[0] == pytest.approx([1 / 2, 3 / 4]) and rows[1] == pytest.approx([0, 1 / 2])
    assert rows[2] == [0, 0]
    assert probabilities(2, [], 3) == [[0, 0, 0], [0, 0, 0]]


def test_encodings_of_a_batch_by_hand() -> None:
    # P3, a single node, a star with three leaves: degree 3 is cut to 2, degree 0 counts as 1.
    batch = batch_of([3, 1, 4], [(0, 1), (1, 2), (4, 5), (4, 6), (4, 7)])
    leaf = [0, 1 / 3, 1, 0]
    expected = np.array([[0, 0.5, 1, 0], [0, 1, 0, 1], [0, 0.5, 1, 0], [0, 0, 1, 0], [0, 1, 0, 1], leaf, leaf, leaf])
    found = structure_encodings(batch, steps=2, degrees=2)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_edges_may_come_in_any_order_over_the_batch() -> None:
    batch = batch_of([2, 3, 2], [(5, 6), (2, 3), (3, 4)])
    expected = [[0, 0], [0, 0], [0, 0.5], [0, 1], [0, 0.5], [0, 1], [0, 1]]
    np.testing.assert_allclose(random_walks(batch, 2), np.array(expected), atol=1e-7)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_against_dense_powers(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(1, 8))
    pairs = [(i, j) for i in range(nodes) for j in range(i, nodes)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    steps = data.draw(st.integers(1, 7))
    matrix = np.zeros((nodes, nodes))
    for i, j in edges:
        matrix[i, j] = matrix[j, i] = 1
    walk = matrix / np.maximum(matrix.sum(axis=0), 1)
    powers = [np.diag(np.linalg.matrix_power(walk, k)) for k in range(1, steps + 1)]
    np.testing.assert_allclose(probabilities(nodes, edges, steps), np.stack(powers, axis=1), atol=1e-6)


def test_a_graph_of_several_blocks() -> None:
    # A ring: the same at every node, wherever a block ends.
    nodes = BLOCK + 3
    np.testing.assert_allclose(probabilities(*ring(nodes), 4), [[0, 1 / 2, 0, 3 / 8]] * nodes, atol=1e-7)


def test_what_is_remembered_cannot_be_written_to() -> None:
    found = return_probabilities(2, np.array([[0], [1]]).tobytes(), 2)
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 1.0
