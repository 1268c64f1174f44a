"""One exchange of neighbors' features before training, so that edges between clients count (FedGCN).

Source: Yao et al. 2023, FedGCN: Convergence-communication tradeoffs in federated training of graph convolutional
networks (NeurIPS; arXiv 2201.12433). With Â = D̃^{-1/2} (A + I) D̃^{-1/2} of the whole graph, each client sends the
server its part Σ_{j ∈ V_k ∩ N(i)} Â_ij x_j of the sum of every node i with neighbors in it, and receives the sums
(Â X)_i: of its own nodes (one hop), and of the neighbors that other clients have (two hops). A GCN of two layers then
has, on a client's own nodes, the outputs that it has on the whole graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raysim.workloads.graphs.graph_set import Floats, Integers
from raysim.workloads.graphs.node_graph import NodeGraph

BLOCK = 2**24
"""Most float64 numbers of the features that are multiplied at a time."""


def spread_features(graph: NodeGraph) -> Floats:
    """Â X [N, F] of a whole graph, computed in float64."""
    from scipy.sparse import coo_array

    roots = scales(graph)
    first, second = graph.edges
    weights = np.concatenate([roots[first] * roots[second]] * 2 + [roots**2])
    nodes = np.arange(len(roots))
    rows, ends = (np.concatenate([one, other, nodes]) for one, other in ((first, second), (second, first)))
    spread = coo_array((weights, (rows, ends)), shape=(len(nodes), len(nodes))).tocsr()
    found = np.empty_like(graph.features)
    width = max(1, BLOCK // len(nodes))
    for start in range(0, found.shape[1], width):
        columns = slice(start, start + width)
        found[:, columns] = spread @ graph.features[:, columns].astype(np.float64)
    return found


def scales(graph: NodeGraph) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """1 / √d̃ of each node [N], d̃ its neighbors in the whole graph and itself."""
    degrees = np.bincount(graph.edges.ravel(), minlength=len(graph.labels)) + 1
    return 1 / np.sqrt(degrees)


@dataclass(frozen=True)
class Surroundings:
    """The nodes around a client: what it knows of edges that cross to other clients."""

    border: Integers
    """Its own nodes with neighbors outside, ascending."""
    outside: Integers
    """Other clients' nodes with neighbors in it, ascending."""
    edges: Integers
    """The edges between them [2, crossing], numbered as in the whole graph."""

    def exchanged_bytes(self, hops: int, width: int) -> tuple[int, int]:
        """Bytes that the client sends and receives, of float32 sums of ``width`` features.

        For one hop it sends its part of the sums of nodes outside, and receives the others' part of those of its
        border; for two it also sends its own part of its border's, and receives the whole sums of nodes outside.
        """
        row = 4 * width
        if hops == 1:
            return row * len(self.outside), row * len(self.border)
        both = row * (len(self.outside) + len(self.border))
        return both, both


def surroundings(edges: Integers, owners: Integers, client: int) -> Surroundings:
    """A client's surroundings from all edges [2, E] and the client of each node [N]."""
    inside = owners[edges] == client
    crossing = edges[:, inside[0] != inside[1]]
    mine = owners[crossing] == client
    return Surroundings(np.unique(crossing[mine]), np.unique(crossing[~mine]), crossing)
