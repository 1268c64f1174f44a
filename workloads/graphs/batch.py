"""Batches of graphs as tensors: node features, edges, and spectra packed by size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from raysim.workloads.batch_bounds import LastBatch, bounds_of_pass
from raysim.workloads.federated_data import Batch
from raysim.workloads.graphs.graph_set import Graphs, Integers

PACK_RATIO = 1.3
"""Largest ratio of nodes (and of slots for edges) between the largest and the smallest graph of a pack."""


@dataclass(frozen=True)
class Pack:
    """Graphs of similar size, neighbors in the batch, padded to the largest of them: g graphs, n nodes, e edges.

    Packs follow one another in the batch, with all their nodes and edges; an eigenvalue stands where its node of the
    same number stands.
    """

    present: torch.Tensor
    """bool [g, n]: where an eigenvalue is, not padding."""
    node_slots: torch.Tensor
    """int64 [nodes of the pack]: where each eigenvalue lies in the flattened [g, n]."""
    edge_slots: torch.Tensor
    """int64 [edges of the pack]: where each edge lies in the flattened [g, e]."""
    products: torch.Tensor
    """float32 [g, e, n]: U_ik U_jk of edge (i, j) and eigenvalue k; zero where there is padding."""


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of a batch, as a spectral model needs them."""

    eigenvalues: torch.Tensor
    """float32 [N]."""
    packs: tuple[Pack, ...]


@dataclass(frozen=True)
class GraphBatch:
    """B graphs as one: nodes of a graph lie together, in the order of the labels.

    Its names are those of PyTorch Geometric's ``Batch``, so that a module that is written for it takes this one too.
    """

    x: torch.Tensor
    """Node features: float32 [N, F]."""
    batch: torch.Tensor
    """int64 [N], ascending: the graph of each node."""
    num_graphs: int
    """B."""
    edges: torch.Tensor
    """int64 [2, E]: each undirected edge once, numbered over the batch; a self-loop has equal ends."""
    spectrum: Spectrum | None = None
    attributes: torch.Tensor | None = None
    """float32 [E, 2, D]: what each edge has in its direction in ``edges`` and in the other; None: edges have none."""

    @cached_property
    def edge_index(self) -> torch.Tensor:
        """int64 [2, 2E − loops]: both directions of every edge, a self-loop once."""
        with torch.inference_mode(False):  # it is kept, and may be trained with after an evaluation
            apart = self.edges[0] != self.edges[1]
            return torch.cat([self.edges, self.edges[:, apart].flip(0)], dim=1)

    @cached_property
    def edge_attr(self) -> torch.Tensor | None:
        """The attributes of ``edge_index``: float32 [2E − loops, D]; None: edges have none."""
        if self.attributes is None:
            return None
        with torch.inference_mode(False):
            apart = self.edges[0] != self.edges[1]
            return torch.cat([self.attributes[:, 0], self.attributes[apart, 1]])

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.x)


class GraphSamples:
    """The graphs of one client's part, handed out in batches.

    The graphs of a batch are sorted by size (and the labels with them), so that spectra are packed with little padding;
    no model here depends on the order of graphs in a batch. Batches in order, as evaluation takes them, are made once.
    """

    def __init__(self, graphs: Graphs, device: str) -> None:
        self._graphs = graphs
        self._device = device
        self._in_order: dict[int, list[Batch]] = {}

    def __len__(self) -> int:
        return len(self._graphs)

    def batches(
        self, batch_size: int, generator: torch.Generator | None = None, last: LastBatch | None = None
    ) -> Iterator[Batch]:
        bounds = bounds_of_pass(len(self), batch_size, generator is not None, last)
        if generator is None:
            if batch_size not in self._in_order:
                with torch.inference_mode(False):
                    order = np.arange(len(self))
                    self._in_order = {batch_size: [self._batch(order[start:stop]) for start, stop in bounds]}
            yield from self._in_order[batch_size]
            return
        order = torch.randperm(len(self), generator=generator, device=generator.device).cpu().numpy()
        for start, stop in bounds:
            yield self._batch(order[start:stop])

    def _batch(self, chosen: Integers) -> Batch:
        sizes, counts = self._graphs.sizes[chosen], self._graphs.edge_counts[chosen]
        graphs = self._graphs.subset(chosen[np.lexsort((chosen, counts, sizes))])
        return Batch(collate(graphs, self._device), torch.from_numpy(graphs.labels).to(self._device))


def collate(graphs: Graphs, device: str = "cpu") -> GraphBatch:
    """All these graphs as one batch, in their order; sorted by size they pack best."""
    edges = graphs.edges + np.repeat(graphs.node_offsets[:-1], graphs.edge_counts)
    return GraphBatch(
        torch.tensor(graphs.features, device=device),
        torch.from_numpy(np.repeat(np.arange(len(graphs)), graphs.sizes)).to(device),
        len(graphs),
        torch.from_numpy(edges).to(device),
        _spectrum(graphs, device) if graphs.has_spectra else None,
        torch.tensor(graphs.attributes, device=device) if graphs.edge_width else None,
    )


def _spectrum(graphs: Graphs, device: str) -> Spectrum:
    starts = pack_starts(graphs.sizes, graphs.edge_counts)
    packs = [
        _pack(graphs, np.arange(start, stop), device)
        for start, stop in zip(starts, [*starts[1:], len(graphs)], strict=True)
    ]
    return Spectrum(torch.tensor(graphs.eigenvalues, device=device), tuple(packs))


def pack_starts(sizes: Integers, edge_counts: Integers) -> list[int]:
    """The first graph of every pack: a new one begins where a graph's size would leave too much padding."""
    starts: list[int] = []
    least, most, edge_slots, edges = 0, 0, 0, 0
    for number, (size, count) in enumerate(zip(sizes.tolist(), edge_counts.tolist(), strict=True)):
        least, most = min(least, size), max(most, size)
        edge_slots, edges = max(edge_slots, count), edges + count
        members = number - starts[-1] + 1 if starts else 0
        fits = most <= max(PACK_RATIO * least, least + 1) and edge_slots * members <= PACK_RATIO * edges + 4 * members
        if not starts or not fits:
            starts.append(number)
            least, most, edge_slots, edges = size, size, count, count
    return starts


def _pack(graphs: Graphs, members: Integers, device: str) -> Pack:
    first, last = int(members[0]), int(members[-1]) + 1
    sizes, counts = graphs.sizes[members], graphs.edge_counts[members]
    size, slots = int(sizes.max()), int(counts.max(initial=0))
    owner = np.repeat(np.arange(len(members)), counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    edge_slots = torch.from_numpy(owner * slots + within).to(device)
    present = np.arange(size)[None] < sizes[:, None]

    # U of each graph with zeros around it, so that row r of graph g is row g · size + r of them all.
    padded = np.zeros((len(members), size, size), np.float32)
    vectors = graphs.vector_offsets
    padded[present[:, :, None] & present[:, None, :]] = graphs.eigenvectors[vectors[first] : vectors[last]]
    rows = torch.from_numpy(padded).to(device).view(-1, size)
    edges = graphs.edges[:, graphs.edge_offsets[first] : graphs.edge_offsets[last]] + owner * size
    row_i, row_j = (rows.index_select(0, torch.from_numpy(ends).to(device)) for ends in edges)
    products = torch.zeros(len(members) * slots, size, device=device).index_copy_(0, edge_slots, row_i * row_j)
    return Pack(
        torch.from_numpy(present).to(device),
        torch.from_numpy(np.flatnonzero(present)).to(device),
        edge_slots,
        products.view(len(members), slots, size),
    )
