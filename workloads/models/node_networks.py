"""Networks on the nodes of a graph, of PyTorch Geometric's layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from raysim.workloads._torch_geometric import GATConv, GCNConv, SAGEConv, SimpleConv
from raysim.workloads.models.dropout import GeneratorDropout

if TYPE_CHECKING:
    from raysim.workloads.graphs.node_batch import NodeBatch


class OfNodes(nn.Module):
    """A network on (x, edge_index) with an output for every node, as PyTorch Geometric has them, for batches of nodes.

    ``OfNodes(torch_geometric.nn.GAT(width, 8, 2, classes))`` is a model that raysim trains.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: NodeBatch) -> Tensor:
        outputs: Tensor = self.network(batch.x, batch.edge_index)
        return batch.of(outputs)


class GcnBody(nn.Module):
    """Convolutions with ReLU, and a last one without weights, whose weights are the head's -> [B, hidden].

    The layers are PyTorch Geometric's; their products with Â, which each of them would compute anew in every pass, and
    with features that are mostly 0, are those of :class:`raysim.workloads.graphs.node_batch.Subgraph`.

    Args:
        spreads: whether the last layer is such a convolution; else the head reads the last features as they are.
        of_inputs: dropout of the input features too.
        at_test: dropout in evaluation too, with the same draws in every pass.
    """

    task_specific = ("convolutions.0",)

    def __init__(  # noqa: PLR0913 - the variants that papers have
        self,
        width: int,
        hidden: int,
        layers: int,
        dropout: float,
        *,
        spreads: bool = True,
        of_inputs: bool = True,
        at_test: bool = False,
    ) -> None:
        super().__init__()
        widths = [width, *[hidden] * (layers - 1)]
        self.convolutions = nn.ModuleList(GCNConv(one, hidden) for one in widths[:-1])
        self.width, self.spreads, self.of_inputs = width, spreads, of_inputs
        self.dropout = FixedDropout(dropout) if at_test else nn.Dropout(dropout)

    def forward(self, batch: NodeBatch) -> Tensor:
        graph = batch.graph
        values = graph.x
        convolution: Any
        for number, convolution in enumerate(self.convolutions):
            if number == 0:
                values = graph.times(convolution.lin.weight, self.dropout if self.of_inputs else None)
            else:
                values = convolution.lin(self.dropout(values))
            values = values if number == 0 and graph.aggregated else graph.spread(values)
            values = (values + convolution.bias).relu()
        values = self.dropout(values)
        return batch.of(graph.spread(values) if self.spreads else values)


class FixedDropout(GeneratorDropout):
    """Dropout that evaluation has too, with the same draws in every pass."""

    def forward(self, input: Tensor) -> Tensor:
        if self.training or not self.p:
            return super().forward(input)
        kept = torch.rand(input.shape, generator=torch.Generator().manual_seed(0)) >= self.p
        return input * kept.to(input.device) / (1 - self.p)


class GatBody(nn.Module):
    """Attention convolutions with ELU -> [B, hidden]."""

    task_specific = ("convolutions.0",)

    def __init__(self, width: int, hidden: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.width = width
        widths = [width, *[hidden] * (layers - 1)]
        self.convolutions = nn.ModuleList(GATConv(one, hidden // heads, heads=heads, dropout=dropout) for one in widths)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: NodeBatch) -> Tensor:
        values = batch.x
        for convolution in self.convolutions:
            values = nn.functional.elu(convolution(self.dropout(values), batch.edge_index))
        features: Tensor = self.dropout(batch.of(values))
        return features


class SageBody(nn.Module):
    """Convolutions [x ‖ mean of neighbors] with ReLU, and a last one without weights -> [B, 2 · hidden]."""

    task_specific = ("convolutions.0",)

    def __init__(self, width: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.width = width
        widths = [width, *[hidden] * (layers - 2)]
        self.convolutions = nn.ModuleList(SAGEConv(one, hidden) for one in widths)
        self.mean = SimpleConv(aggr="mean")
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: NodeBatch) -> Tensor:
        values = batch.x
        for convolution in self.convolutions:
            values = self.dropout(convolution(values, batch.edge_index).relu())
        both = torch.cat([values, self.mean(values, batch.edge_index)], dim=1)
        return batch.of(both)


class SgcBody(nn.Module):
    """Âᴷ X, without parameters -> [B, width]."""

    def __init__(self, hops: int, width: int) -> None:
        super().__init__()
        self.hops, self.width = hops, width

    def forward(self, batch: NodeBatch) -> Tensor:
        return batch.of(batch.graph.spread_features(self.hops))


class GamlpBody(nn.Module):
    """A mean of X_k = Âᵏ X by recursive attention, and an MLP -> [B, hidden] (Zhang et al. 2022, R-GAMLP).

    Score of hop 0 is σ(a · [X_0 ‖ X_0]), of hop k it is σ(a · [H_k ‖ X_k]), where H_k is the mean of X_0 … X_{k−1} with
    the softmax of their scores as weights; the features are the mean of all hops with the softmax of all scores.
    """

    task_specific = ("attention", "layers.0")

    def __init__(self, width: int, hidden: int, layers: int, hops: int, dropout: float) -> None:
        super().__init__()
        self.width = width
        self.hops = hops
        self.attention = nn.Linear(2 * width, 1)
        self.layers = nn.ModuleList(nn.Linear(one, hidden) for one in [width, *[hidden] * (layers - 1)])
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: NodeBatch) -> Tensor:
        found = [self._features(batch, nodes) for nodes in batch.ends]
        return found[0] if len(found) == 1 else found[0] * found[1]

    def _features(self, batch: NodeBatch, nodes: Tensor) -> Tensor:
        """Features of some nodes [B, hidden]."""
        values = self._weighed([batch.graph.spread_features(hop)[nodes] for hop in range(self.hops + 1)])
        for layer in self.layers:
            values = layer(self.dropout(values)).relu()
        features: Tensor = self.dropout(values)
        return features

    def _weighed(self, hops: list[Tensor]) -> Tensor:
        """The mean of the hops' features [B, width] by each node's own weights."""
        inputs = torch.stack(hops)
        scores = [self.attention(torch.cat([hops[0], hops[0]], dim=1)).sigmoid()]
        for k in range(1, len(hops)):
            history = (torch.stack(scores).softmax(dim=0) * inputs[:k]).sum(dim=0)
            scores.append(self.attention(torch.cat([history, hops[k]], dim=1)).sigmoid())
        mean: Tensor = (torch.stack(scores).softmax(dim=0) * inputs).sum(dim=0)
        return mean
