"""Networks on the nodes of a graph, of PyTorch Geometric's layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from raysim.workloads._torch_geometric import APPNP, GCNConv

if TYPE_CHECKING:
    from raysim.workloads.graphs.node_federation import NodeBatch


class OfNodes(nn.Module):
    """A network on (x, edge_index) with an output for every node, as PyTorch Geometric has them, for batches of nodes.

    ``OfNodes(torch_geometric.nn.GAT(width, 8, 2, classes))`` is a model that raysim trains.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: NodeBatch) -> Tensor:
        outputs: Tensor = self.network(batch.x, batch.edge_index)
        return outputs[batch.nodes]


class GcnBody(nn.Module):
    """Convolutions with ReLU, and a last one without weights, whose weights are the head's -> [B, hidden]."""

    task_specific = ("convolutions.0",)

    def __init__(self, width: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        widths = [width, *[hidden] * (layers - 1)]
        self.convolutions = nn.ModuleList(GCNConv(one, hidden) for one in widths[:-1])
        self.spread = APPNP(K=1, alpha=0.0)  # Â times its input
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: NodeBatch) -> Tensor:
        values = batch.x
        for convolution in self.convolutions:
            values = convolution(self.dropout(values), batch.edge_index).relu()
        spread: Tensor = self.spread(self.dropout(values), batch.edge_index)
        return spread[batch.nodes]
