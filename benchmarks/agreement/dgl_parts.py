"""The parts of dgl and ogb that the authors' network of FedSSP takes, in plain torch, and a mini-batch in its form."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from raysim.workloads.graphs.batch import collate
from raysim.workloads.graphs.graph_set import Graphs

Message = tuple[str, str]
"""Names of what is read and of what is written."""


class Graph:
    """Directed edges between the nodes of several graphs, with data of nodes and of edges."""

    def __init__(self, edges: Tensor, sizes: Tensor) -> None:
        self.source, self.target = edges
        self.sizes = sizes
        self.nodes = int(sizes.sum())
        self.device = edges.device
        self.ndata: dict[str, Tensor] = {}
        self.edata: dict[str, Tensor] = {}

    def to(self, device: object) -> Graph:
        return self

    def number_of_edges(self) -> int:
        return len(self.source)

    def edges(self, form: str, order: str) -> tuple[Tensor, Tensor]:
        return self.source, self.target

    @contextmanager
    def local_scope(self) -> Iterator[None]:
        nodes, edges = dict(self.ndata), dict(self.edata)
        yield
        self.ndata, self.edata = nodes, edges

    def apply_edges(self, copied: Message) -> None:
        self.edata[copied[1]] = self.ndata[copied[0]][self.source]

    def update_all(self, copied: Message, summed: Message) -> None:
        self.ndata[summed[1]] = self.summed(self.edata[copied[0]])

    def summed(self, values: Tensor) -> Tensor:
        """Over the incoming edges of each node."""
        return values.new_zeros(self.nodes, values.shape[1]).index_add(0, self.target, values)


def edge_softmax(graph: Graph, values: Tensor) -> Tensor:
    """Over the incoming edges of each node."""
    powers = (values - values.detach().max()).exp()
    return powers / graph.summed(powers)[graph.target]


class AvgPooling(nn.Module):
    """The mean over the nodes of each graph."""

    def forward(self, graph: Graph, values: Tensor) -> Tensor:
        owner = torch.repeat_interleave(torch.arange(len(graph.sizes)), graph.sizes)
        sums = values.new_zeros(len(graph.sizes), values.shape[1]).index_add(0, owner, values)
        return sums / graph.sizes[:, None]


def install() -> None:
    """Put these in the places of dgl's."""

    def message(read: str, written: str) -> Message:
        return read, written

    functions = {"copy_u": message, "copy_e": message, "sum": message}
    _module("dgl", function=_module("dgl.function", **functions))
    for name in ("dgl.nn", "dgl.nn.pytorch", "dgl.ops", "ogb", "ogb.utils"):
        _module(name)
    _module("dgl.nn.pytorch.glob", AvgPooling=AvgPooling)
    _module("dgl.ops.edge_softmax", edge_softmax=edge_softmax)
    _module("ogb.utils.features", get_atom_feature_dims=None, get_bond_feature_dims=None)


def _module(name: str, **content: Any) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    module.__dict__.update(content)
    return module


def batch(graphs: Graphs) -> tuple[Tensor, Tensor, Graph, Tensor, Tensor, int]:
    """(eigenvalues and eigenvectors, padded; graph; sizes; labels; number of graphs) of graphs with spectra."""
    sizes, most = torch.from_numpy(graphs.sizes), int(graphs.sizes.max())
    values, vectors = torch.zeros(len(graphs), most), torch.zeros(len(graphs), most, most)
    for number, size in enumerate(graphs.sizes.tolist()):
        node, entry = graphs.node_offsets[number], graphs.vector_offsets[number]
        values[number, :size] = torch.tensor(graphs.eigenvalues[node : node + size])
        own = graphs.eigenvectors[entry : entry + size * size].reshape(size, size)
        vectors[number, :size, :size] = torch.tensor(own)
    whole = collate(graphs)
    edges = whole.edge_index.numpy()
    ordered = torch.from_numpy(edges[:, np.lexsort((edges[1], edges[0]))])  # as the mask over pairs lists them
    graph = Graph(ordered, sizes)
    graph.ndata["feat"] = whole.x
    return values, vectors, graph, sizes, torch.from_numpy(graphs.labels), len(graphs)
