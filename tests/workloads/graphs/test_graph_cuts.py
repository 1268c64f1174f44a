"""Cuts of one graph that follow its edges, on graphs of cliques."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.graph_cuts import communities, grouped, largest_component, metis_parts
from raysim.workloads.graphs.graph_set import Integers


def cliques(count: int, size: int) -> Integers:
    """Edges of cliques of consecutive nodes, each joined to the next by one edge."""
    within = [
        (start + one, start + other)
        for start in range(0, count * size, size)
        for one in range(size)
        for other in range(one + 1, size)
    ]
    between = [(start - 1, start) for start in range(size, count * size, size)]
    return np.array(sorted(within + between), np.int64).T


def test_communities_are_the_cliques() -> None:
    found = communities(cliques(4, 5), 21, seed=0)  # node 20 has no edge
    assert [part.tolist() for part in found] == [
        [*range(5)],
        [*range(5, 10)],
        [*range(10, 15)],
        [*range(15, 20)],
        [20],
    ]


def test_communities_of_equal_arguments_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = cliques(3, 4)
    first = communities(edges, 12, seed=7)
    monkeypatch.setattr("networkx.community.louvain_communities", None)
    second = communities(edges.copy(), 12, seed=7)
    assert all(one is other for one, other in zip(first, second, strict=True)) and not first[0].flags.writeable


def test_pieces_go_round_as_in_fedsage() -> None:
    """12 nodes, 3 clients, s = 4, δ = 2: pieces have at most 2 nodes, a client less than 6, and at 4 it is full."""
    parts = [np.arange(5), np.arange(5, 9), np.arange(9, 12)]  # pieces of 2, 2, 1; 2, 2; 2, 1
    owners = grouped(parts, clients=3, slack=2)
    assert owners.tolist() == [0, 0, 0, 0, 2, 1, 1, 1, 1, 2, 2, 2]


def test_sizes_at_the_very_limits_as_in_fedsage() -> None:
    """12 nodes, 2 clients, s = 6, δ = 2: a piece that would bring a client to 8 passes on, and one with 6 is full."""
    owners = grouped([np.arange(8), np.arange(8, 12)], clients=2, slack=2)  # pieces of 4, 4, 4
    assert owners.tolist() == [0] * 4 + [1] * 4 + [0] * 4  # the third: both would have 8, and the first has fewest
    parts = [np.arange(4), np.arange(4, 6), np.arange(6, 7), np.arange(7, 12)]  # pieces of 4, 4, 2, 1, 1
    assert grouped(parts, clients=2, slack=2).tolist() == [0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0]


def test_a_piece_that_all_pass_on_goes_to_the_smallest_client() -> None:
    owners = grouped([np.arange(4)], clients=2, slack=0)  # s = 2: no piece of 2 is below 2
    assert np.bincount(owners).tolist() == [2, 2]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 6), st.integers(0, 25))
def test_every_node_has_one_client(sizes: list[int], clients: int, slack: int) -> None:
    ends = np.cumsum([0, *sizes])
    parts = [np.arange(start, stop) for start, stop in pairwise(ends)]
    owners = grouped(parts, clients, slack)
    assert len(owners) == ends[-1] and owners.min() >= 0 and owners.max() < clients


def test_metis_cuts_between_the_cliques() -> None:
    pytest.importorskip("pymetis")
    edges = cliques(4, 8)
    owners = metis_parts(edges, 32, 4, seed=0)
    assert np.bincount(owners).tolist() == [8] * 4
    assert int((owners[edges[0]] != owners[edges[1]]).sum()) == 3
    assert (metis_parts(edges, 32, 4, seed=0) == owners).all()


def test_without_pymetis_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(WorkloadError, match="pip install pymetis"):
        metis_parts(cliques(2, 4), 8, 2, seed=0)


def test_the_largest_component() -> None:
    edges = np.array([[1, 2], [2, 3], [5, 6]]).T
    assert largest_component(edges, 8).tolist() == [1, 2, 3]
    assert largest_component(np.zeros((2, 0), np.int64), 3).tolist() == [0]
