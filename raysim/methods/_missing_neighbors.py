"""FedSage+'s generator of missing neighbors: the network, its losses, and the graph that it mends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, smooth_l1_loss

from raysim.training.optimizers import Adam
from raysim.workloads.graphs.node_batch import Subgraph
from raysim.workloads.graphs.sparse_products import Sparse
from raysim.workloads.models.dropout import GeneratorDropout

HIDDEN, LATENT, FIRST = 32, 128, 256
"""Widths of the encoder's hidden layer and of its encodings, and of the generator's first layer."""
DROPOUT, DECAY = 0.5, 1e-4


@dataclass(frozen=True)
class Impaired:
    """A client's graph without some of its nodes, and what is missing there."""

    x: Tensor
    """Features [m, F] of the nodes that are kept."""
    edges: Tensor
    """int64 [2, 2E]: both directions of every edge between them."""
    counts: Tensor
    """Number of hidden neighbors of each node [m]."""
    neighbors: Tensor
    """Features of at most P hidden neighbors of each node [m, P, F]; zeros behind the last."""
    train: Tensor
    """int64 [B]: the training nodes, as they are numbered here."""
    labels: Tensor
    """Their labels [B]."""


def impaired(graph: Subgraph, hidden: Tensor, most: int, train: Tensor, labels: Tensor) -> Impaired:
    """The graph without the nodes ``hidden``, none of which is in ``train``; ``most`` is P."""
    gone = torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.x.device)
    gone[hidden] = True
    kept = (~gone).nonzero().flatten()
    place = torch.full_like(gone, -1, dtype=torch.int64)
    place[kept] = torch.arange(len(kept), device=kept.device)
    first, second = graph.edge_index
    inside = ~gone[first] & ~gone[second]
    counts = torch.zeros(len(kept), dtype=torch.int64, device=kept.device)
    neighbors = graph.x.new_zeros(len(kept), most, graph.x.shape[1])
    for one, other in graph.edge_index[:, ~gone[first] & gone[second]].T.tolist():
        node = int(place[one])
        if counts[node] < most:
            neighbors[node, counts[node]] = graph.x[other]
        counts[node] += 1
    return Impaired(graph.x[kept], place[graph.edge_index[:, inside]], counts, neighbors, place[train], labels)


class Generator(nn.Module):
    """From a graph, the number of missing neighbors of each node and features of at most P of them.

    Encodings z are those of two layers relu(M X Wᵀ + b), M the mean over a node and its neighbors; numbers are
    relu(z wᵀ + b), features tanh of three layers on z + N(0, I). A classifier of two such layers, without the last
    ReLU, is trained beside it.
    """

    def __init__(self, features: int, classes: int, most: int, width: int) -> None:
        super().__init__()
        self.most = most
        self.encoder = nn.ModuleList([nn.Linear(features, HIDDEN), nn.Linear(HIDDEN, LATENT)])
        self.degree = nn.Linear(LATENT, 1)
        self.layers = nn.ModuleList(
            [nn.Linear(LATENT, FIRST), nn.Linear(FIRST, width), nn.Linear(width, most * features)]
        )
        self.dropout = GeneratorDropout(DROPOUT)
        self.classifier = nn.ModuleList([nn.Linear(features, HIDDEN), nn.Linear(HIDDEN, classes)])

    def missing(self, x: Tensor, means: Sparse) -> tuple[Tensor, Tensor, Tensor]:
        """Numbers ñ [n]; the nodes [g] of which ⌊ñ⌋ ≥ 1; features of P neighbors of each of these [g, P, F]."""
        codes = self._convolved(self.encoder, x, means).relu()
        numbers: Tensor = self.degree(codes).relu().flatten()
        nodes = (numbers.detach() >= 1).nonzero().flatten()
        values = (codes + torch.randn_like(codes))[nodes]
        for layer in self.layers[:-1]:
            values = layer(values).relu()
        values = self.layers[-1](self.dropout(values)).tanh()
        return numbers, nodes, values.view(len(nodes), self.most, x.shape[1])

    def logits(self, x: Tensor, means: Sparse) -> Tensor:
        """Logits of the classifier [n, C]."""
        return self._convolved(self.classifier, x, means)

    def _convolved(self, layers: Any, x: Tensor, means: Sparse) -> Tensor:
        first, second = layers
        hidden = (means @ linear(x, first.weight) + first.bias).relu()
        found: Tensor = means @ linear(self.dropout(hidden), second.weight) + second.bias
        return found


def averaging(edges: Tensor, size: int) -> Sparse:
    """M = D̃^{-1} (A + I) [n, n]."""
    loops = torch.arange(size, device=edges.device)
    places = torch.cat([edges, torch.stack([loops, loops])], dim=1)
    places = places[:, torch.argsort(places[0] * size + places[1], stable=True)]
    degrees = torch.bincount(places[0], minlength=size)
    return Sparse.of_entries(places, 1 / degrees[places[0]], (size, size))


def chosen(numbers: Tensor, nodes: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Rows of ``nodes`` [k] and places [k] of the generated neighbors that count: the first min(P, ⌊ñ⌋) of each."""
    counts = numbers.detach()[nodes].long().clamp(max=most)
    rows, places = (torch.arange(most, device=nodes.device)[None] < counts[:, None]).nonzero().T
    return rows, places


def joined(x: Tensor, edges: Tensor, centers: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
    """Features [n + k, F] and edges [2, 2E + 2k] of a graph with a new neighbor of each of ``centers`` [k]."""
    new = torch.arange(len(x), len(x) + len(centers), device=x.device)
    ends = torch.stack([centers, new])
    return torch.cat([x, features]), torch.cat([edges, ends, ends.flip(0)], dim=1)


def nearest(generated: Tensor, counts: Tensor, true: Tensor, known: Tensor) -> Tensor:
    """Σ over nodes and generated neighbors of the mean squared distance to the nearest true one, min over k.

    Args:
        generated: features [b, P, F].
        counts: how many of them count, of each node [b].
        true: features of true neighbors [b, K, F].
        known: how many of these there are, of each node [b]; of a node with none nothing is added.
    """
    apart = (generated[:, :, None] - true[:, None]).square().mean(3)
    there = torch.arange(true.shape[1], device=true.device) < known[:, None]
    least = apart.masked_fill(~there[:, None], torch.inf).min(2).values
    wanted = (torch.arange(generated.shape[1], device=true.device) < counts[:, None]) & (known[:, None] > 0)
    return torch.where(wanted, least, 0.0).sum()


@dataclass(frozen=True)
class Training:
    """Training of a generator on an impaired graph."""

    graph: Impaired
    elsewhere: Sequence[Tensor]
    """Features that other clients have shown [m_j, F]."""
    rate: float
    epochs: int

    def run(self, generator: Generator) -> None:
        """All parts by the client's own losses, then the generator alone by those of the other clients too."""
        means = averaging(self.graph.edges, len(self.graph.x))
        self._steps(generator, means, list(generator.parameters()), ())
        if self.elsewhere:
            self._steps(generator, means, list(generator.layers.parameters()), self.elsewhere)

    def _steps(
        self, generator: Generator, means: Sparse, parameters: list[nn.Parameter], others: Sequence[Tensor]
    ) -> None:
        generator.train()
        for parameter in generator.parameters():
            parameter.grad = torch.zeros_like(parameter)
        steps = Adam(parameters, self.rate, DECAY, decoupled=False)
        for _ in range(self.epochs):
            generator.zero_grad(set_to_none=False)
            (self.loss(generator, means, others) / (len(others) + 1)).backward()
            steps.step()

    def loss(self, generator: Generator, means: Sparse, others: Sequence[Tensor]) -> Tensor:
        """L^d + L^f + L^c, and L^f beside P features of each other client that are drawn for each training node."""
        graph, most = self.graph, generator.most
        numbers, nodes, made = generator.missing(graph.x, means)
        rows, places = chosen(numbers, nodes, most)
        x, edges = joined(graph.x, graph.edges, nodes[rows], made[rows, places])
        logits = generator.logits(x, averaging(edges, len(x)))
        loss = smooth_l1_loss(numbers[graph.train], graph.counts[graph.train].to(numbers.dtype))
        loss = loss + cross_entropy(logits[graph.train], graph.labels)
        trained = torch.isin(nodes, graph.train)
        these, made = nodes[trained], made[trained]
        counts = numbers.detach()[these].long().clamp(max=most)
        known = graph.counts[these].clamp(max=most)
        apart = nearest(made, counts, graph.neighbors[these], known)
        for shown in others:
            drawn = torch.randint(len(shown), (len(graph.train), most)).to(shown.device)
            there = torch.searchsorted(graph.train, these)
            apart = apart + nearest(made, counts, shown[drawn[there]], known)
        return loss + apart / (len(graph.train) * most)
