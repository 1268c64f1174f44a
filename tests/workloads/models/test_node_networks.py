"""The graph convolutional network for nodes."""

from __future__ import annotations

import torch
from torch_geometric.nn import GCNConv

from raysim.workloads.federated_data import InputSpec
from raysim.workloads.graphs.node_federation import NodeBatch
from raysim.workloads.models.graph_specs import Gcn

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_it_is_the_network_of_kipf_and_welling() -> None:
    """Two of PyG's convolutions with a ReLU between them, on the nodes that are asked for."""
    model = Gcn(hidden=4, dropout=0.0).build(InputSpec((3,), 2, "nodes"))
    x, chosen = torch.rand(4, 3), torch.tensor([3, 1])
    second = GCNConv(4, 2)
    second.load_state_dict({"lin.weight": model.head.weight, "bias": model.head.bias + 0.5})
    with torch.no_grad():
        model.head.bias.add_(0.5)
    expected = second(model.body.convolutions[0](x, EDGES).relu(), EDGES)[chosen]  # type: ignore[operator, index]
    torch.testing.assert_close(model(NodeBatch(x, EDGES, chosen)), expected)
