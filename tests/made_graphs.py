"""Graphs of a test's own, from their numbers of nodes and their edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from raysim.workloads.graphs.batch import GraphBatch
from raysim.workloads.graphs.graph_set import Graphs, offsets

Edge = tuple[int, int]
Made = tuple[int, Sequence[Edge]]
"""The number of nodes, and edges between them."""


def path(nodes: int) -> Made:
    return nodes, [(node, node + 1) for node in range(nodes - 1)]


def ring(nodes: int) -> Made:
    return nodes, [*path(nodes)[1], (0, nodes - 1)]


def graphs_of(*made: Made, features: Any = None, labels: Any = None) -> Graphs:
    """Graphs with one feature that is 1, and of one class, unless features [nodes, F] or labels are given."""
    sizes = [nodes for nodes, _ in made]
    ends = [edge for _, edges in made for edge in edges]
    return Graphs(
        np.ones((sum(sizes), 1), np.float32) if features is None else features,
        offsets(np.array(sizes, np.int64)),
        np.array(ends, np.int64).reshape(-1, 2).T,
        offsets(np.array([len(edges) for _, edges in made], np.int64)),
        np.zeros(len(made), np.int64) if labels is None else np.array(labels, np.int64),
    )


def batch_of(sizes: list[int], edges: list[Edge], width: int = 3) -> GraphBatch:
    """Graphs of these sizes with random features; the edges are numbered over all of them."""
    features = torch.randn(sum(sizes), width, generator=torch.Generator().manual_seed(len(edges)))
    graph = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return GraphBatch(features, graph, len(sizes), torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T)
