"""Nodes of one graph as a network takes them: the graph, what is computed of it alone, and the nodes asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from raysim.workloads.batch_bounds import LastBatch, bounds_of_pass
from raysim.workloads.federated_data import Batch
from raysim.workloads.graphs.sparse_products import Sparse, symmetric

if TYPE_CHECKING:
    from raysim.workloads.graphs.sparse_products import Dropout

Made = TypeVar("Made")
SPARSE_SHARE = 0.1
"""Largest share of features that are not 0 with which products of features skip the zeros."""
SPARSE_WIDTH = 64
"""Least width of features with which they do."""


class Subgraph:
    """A graph on one device, with what every pass over it needs and that no parameter changes, computed once.

    Args:
        x: features float32 [n, F].
        edge_index: int64 [2, 2E], both directions of every edge.
        norm: weights of Â's entries and their places, if not those of this graph alone: (edge_index with loops
            [2, 2E + n], weights [2E + n]); None: Â = D^{-1/2} (A + I) D^{-1/2} (Kipf and Welling 2017).
        aggregated: whether ``x`` is Â X already, of a graph that is larger than this one.
        elsewhere: features that each other client has shown before training [m_j, F].
    """

    def __init__(
        self,
        x: Tensor,
        edge_index: Tensor,
        norm: tuple[Tensor, Tensor] | None = None,
        aggregated: bool = False,
        elsewhere: Sequence[Tensor] = (),
    ) -> None:
        self.x, self.edge_index, self.aggregated, self.elsewhere = x, edge_index, aggregated, elsewhere
        self._norm = norm
        self._hops: list[Tensor] = [x]

    @property
    def num_nodes(self) -> int:
        """The number n of all nodes."""
        return len(self.x)

    @cached_property
    def spreading(self) -> Sparse:
        """Â [n, n]."""
        return _outside_of_gradients(self._normalized)

    @cached_property
    def features(self) -> Sparse | None:
        """``x`` without its zeros [n, F]; None where there are not enough of them."""
        return _outside_of_gradients(self._sparse)

    def spread(self, values: Tensor) -> Tensor:
        """Â · values [n, width]."""
        return self.spreading @ values

    def spread_features(self, hops: int) -> Tensor:
        """Âᵏ X [n, F]; of aggregated features, Â X, one hop is done."""
        with torch.inference_mode(False), torch.no_grad():
            while len(self._hops) <= hops:
                self._hops.append(self.x if self.aggregated and len(self._hops) == 1 else self.spread(self._hops[-1]))
        return self._hops[hops]

    def times(self, weight: Tensor, dropout: Dropout | None = None) -> Tensor:
        """X Wᵀ [n, width] of a weight W [width, F], with ``dropout`` on X first."""
        if self.features is None:
            return torch.nn.functional.linear(self.x if dropout is None else dropout(self.x), weight)
        features = self.features if dropout is None else self.features.changed(dropout)
        return features @ weight.T

    def _normalized(self) -> Sparse:
        if self._norm is None:
            from raysim.workloads._torch_geometric import gcn_norm

            self._norm = gcn_norm(self.edge_index, None, len(self.x), dtype=self.x.dtype)
        places, weights = self._norm
        return symmetric(places, weights, len(self.x))

    def _sparse(self) -> Sparse | None:
        if self.x.shape[1] < SPARSE_WIDTH or float((self.x != 0).float().mean()) > SPARSE_SHARE:
            return None
        return Sparse.of(self.x)


def _outside_of_gradients(made: Callable[[], Made]) -> Made:
    """A value that training may use even if an evaluation is the first to ask for it."""
    with torch.inference_mode(False), torch.no_grad():
        return made()


@dataclass(frozen=True, eq=False)
class NodeBatch:
    """Some nodes of a client's graph, and all of the graph: a model's outputs are for ``nodes`` alone.

    The names ``x``, ``edge_index`` and ``num_nodes`` are those of PyTorch Geometric's ``Data``.
    """

    graph: Subgraph
    nodes: Tensor
    """int64 [B]: those that are asked for, in the order of the labels."""

    @property
    def x(self) -> Tensor:
        """Features of all n nodes: float32 [n, F]."""
        return self.graph.x

    @property
    def edge_index(self) -> Tensor:
        """int64 [2, 2E]: both directions of every edge."""
        return self.graph.edge_index

    @property
    def num_nodes(self) -> int:
        """The number n of all nodes."""
        return self.graph.num_nodes

    @property
    def ends(self) -> tuple[Tensor, ...]:
        """The nodes [B] whose values make up what is asked for."""
        return (self.nodes,)

    def of(self, values: Tensor) -> Tensor:
        """The values [B, width] of the nodes that are asked for, from those of all nodes [n, width]."""
        return values[self.nodes]


@dataclass(frozen=True, eq=False)
class PairBatch(NodeBatch):
    """Some pairs of nodes: what is asked for are products of the two nodes' values, entry by entry."""

    others: Tensor
    """int64 [B]: the second node of each pair, whose first is in ``nodes``."""

    @property
    def ends(self) -> tuple[Tensor, ...]:
        """The first and the second nodes [B]."""
        return self.nodes, self.others

    def of(self, values: Tensor) -> Tensor:
        """The products [B, width]."""
        return values[self.nodes] * values[self.others]


class NodeSamples:
    """Nodes of one kind (to train on, say) of a client's graph; every batch comes with the whole graph.

    Without a generator there is one batch, whatever the size asked for, as each takes a pass over the whole graph.
    """

    def __init__(self, graph: Subgraph, nodes: Tensor, labels: Tensor) -> None:
        self.graph, self.nodes, self.labels = graph, nodes, labels

    def __len__(self) -> int:
        return len(self.nodes)

    def _batch(self, chosen: Tensor | slice) -> Batch:
        return Batch(NodeBatch(self.graph, self.nodes[chosen]), self.labels[chosen])

    def batches(
        self, batch_size: int, generator: torch.Generator | None = None, last: LastBatch | None = None
    ) -> Iterator[Batch]:
        bounds = [(0, len(self))] if generator is None else bounds_of_pass(len(self), batch_size, True, last)
        if generator is None or bounds == [(0, len(self))]:
            yield self._batch(slice(None))
            return
        order = torch.randperm(len(self), generator=generator, device=generator.device).to(self.nodes.device)
        for start, stop in bounds:
            yield self._batch(order[start:stop])


class PairSamples(NodeSamples):
    """Pairs of nodes of one kind (to train on, say) of a client's graph.

    Args:
        ends: the two nodes of each pair [2, m].
        labels: whether an edge joins them [m].
    """

    def __init__(self, graph: Subgraph, ends: Tensor, labels: Tensor) -> None:
        super().__init__(graph, ends[0], labels)
        self.others = ends[1]

    def _batch(self, chosen: Tensor | slice) -> Batch:
        return Batch(PairBatch(self.graph, self.nodes[chosen], self.others[chosen]), self.labels[chosen])
