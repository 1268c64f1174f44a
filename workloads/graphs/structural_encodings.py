"""Structural encodings of nodes, which FedStar's shared channel sees instead of node features.

Both depend on the edges alone, so they mean the same on every client, whatever its node features are.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from scipy.sparse import csr_array

from raysim.workloads.graphs.batch import GraphBatch
from raysim.workloads.graphs.graph_set import Floats

CACHED_GRAPHS = 32_768
"""Number of graphs whose random walks stay in memory, 4 · steps bytes a node: they are the same in every epoch."""
BLOCK = 256
"""Number of start nodes that walk at once, so that memory stays at two blocks of [nodes, 256] float64."""


def structure_encodings(batch: GraphBatch, steps: int, degrees: int) -> torch.Tensor:
    """Random-walk return probabilities of 1 … ``steps`` steps, then the one-hot degree: float32 [N, steps + degrees].

    The degree is cut to 1 … ``degrees`` (a node without neighbors counts as one of degree 1), a self-loop counts once.

    Source: Tan et al. 2023, Federated learning on non-IID graphs via structural knowledge sharing (AAAI; arXiv
    2211.13009); the cut of the degrees is that of the authors' code.
    """
    degree = torch.bincount(batch.edge_index[0], minlength=len(batch.x)).clamp(1, degrees)
    one_hot = torch.nn.functional.one_hot(degree - 1, degrees).to(torch.float32)
    return torch.cat([random_walks(batch, steps), one_hot], dim=1)


def random_walks(batch: GraphBatch, steps: int) -> torch.Tensor:
    """[(A D⁻¹)^k]_vv for k = 1 … steps, float32 [N, steps]; zero for a node without neighbors."""
    graph, edges = batch.batch.cpu().numpy(), batch.edges.cpu().numpy()
    sizes = np.bincount(graph, minlength=batch.num_graphs)
    first_node = np.cumsum(sizes) - sizes
    owner = graph[edges[0]]
    order = np.argsort(owner, kind="stable")
    own = edges[:, order] - first_node[owner[order]]
    stops = np.cumsum(np.bincount(owner, minlength=batch.num_graphs))
    parts = [
        return_probabilities(size, own[:, start:stop].tobytes(), steps)
        for size, start, stop in zip(sizes.tolist(), [0, *stops[:-1].tolist()], stops.tolist(), strict=True)
    ]
    return torch.from_numpy(np.concatenate(parts)).to(batch.x.device)


@lru_cache(maxsize=CACHED_GRAPHS)
def return_probabilities(nodes: int, edges: bytes, steps: int) -> Floats:
    """Probabilities that a random walk of 1 … ``steps`` steps ends where it began, read-only float32 [nodes, steps].

    Args:
        nodes: of one graph.
        edges: its undirected edges once, the bytes of an int64 [2, E]; a self-loop is one way out of its node.
        steps: at least 1.

    A D⁻¹ has the diagonal powers of the symmetric N = D^-½ A D^-½, and with the columns n_a of N^a these are
    [N^2a]_vv = ⟨n_a, n_a⟩ and [N^(2a+1)]_vv = ⟨n_a, n_a+1⟩: half the products, each of a sparse and a narrow dense
    matrix. In float64, rounded once at the end; nothing depends on which batch the graph is in.
    """
    ends = np.frombuffer(edges, np.int64).reshape(2, -1)
    apart = ends[0] != ends[1]
    both = np.concatenate([ends, ends[::-1, apart]], axis=1)
    degree = np.bincount(both[0], minlength=nodes)
    scale = 1 / np.sqrt(np.maximum(degree, 1))
    walk = csr_array((scale[both[0]] * scale[both[1]], (both[0], both[1])), shape=(nodes, nodes))
    found = np.empty((nodes, steps), np.float32)
    for start in range(0, nodes, BLOCK):
        block = np.arange(start, min(start + BLOCK, nodes))
        column = np.zeros((nodes, len(block)))
        column[block, np.arange(len(block))] = 1.0
        for step in range(0, steps, 2):
            following = walk @ column
            found[block, step] = (column * following).sum(axis=0)
            if step + 1 < steps:
                found[block, step + 1] = np.square(following).sum(axis=0)
            column = following
    found.flags.writeable = False
    return found
