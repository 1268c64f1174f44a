"""Networks for the nodes of one graph, beside PyTorch Geometric's layers and by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.nn import GCNConv, SAGEConv, SGConv

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.graphs.node_batch import NodeBatch, Subgraph
from raysim.workloads.models.node_specs import BodyOfNodes, Gamlp, Gat, Gcn, Sage, Sgc

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
    torch.testing.assert_close(model(NodeBatch(Subgraph(x, EDGES), chosen)), expected)


def test_fed_pubs_network_is_two_of_pygs_convolutions_and_a_linear_layer() -> None:
    options = Gcn(layers=3, hidden=4, last="linear", input_dropout=False, dropout=0.0)
    model = options.build(InputSpec((3,), 2, "nodes"))
    x, chosen = torch.rand(4, 3), torch.tensor([3, 1])
    values = x
    for convolution in model.body.convolutions:  # type: ignore[union-attr]
        values = convolution(values, EDGES).relu()
    torch.testing.assert_close(model(NodeBatch(Subgraph(x, EDGES), chosen)), model.head(values)[chosen])


def test_dropout_stays_on_at_test_with_the_same_draws() -> None:
    model = Gcn(hidden=64, dropout_at_test=True).build(InputSpec((3,), 2, "nodes")).eval()
    batch = NodeBatch(Subgraph(torch.rand(4, 3), EDGES), torch.arange(4))
    features = model.body.dropout(torch.ones(4, 64))  # type: ignore[operator]
    assert set(features.unique().tolist()) == {0.0, 2.0} and 80 < int((features == 0).sum()) < 176
    assert torch.equal(model(batch), model(batch))


def test_products_that_skip_zeros_have_the_values_and_gradients_of_dense_ones() -> None:
    x = (torch.rand(4, 70, generator=torch.Generator().manual_seed(1)) < 0.05).float()
    graph = Subgraph(x, EDGES)
    assert graph.features is not None and Subgraph(torch.ones(4, 70), EDGES).features is None
    weight = torch.randn(5, 70, requires_grad=True)
    sparse, dense = graph.times(weight), x @ weight.T
    torch.testing.assert_close(sparse, dense)
    gradients = [torch.autograd.grad(values.square().sum(), weight)[0] for values in (sparse, dense)]
    torch.testing.assert_close(*gradients)
    dropped = graph.times(torch.eye(70), torch.nn.Dropout(0.5))  # X itself, with half of its ones doubled
    assert set(dropped[x != 0].tolist()) == {0.0, 2.0} and not dropped[x == 0].any()


def logits(options: BodyOfNodes, x: torch.Tensor, chosen: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """The model without dropout on a path of four nodes, the last of which has no edge."""
    model: Any = options.build(InputSpec((3,), 2, "nodes"))
    return model, model(NodeBatch(Subgraph(x, EDGES), chosen))


def test_sage_is_two_layers_of_pygs() -> None:
    x, chosen = torch.rand(4, 3), torch.tensor([3, 1])
    model, found = logits(Sage(hidden=4, dropout=0.0), x, chosen)
    second = SAGEConv(4, 2)
    second.load_state_dict(
        {
            "lin_r.weight": model.head.weight[:, :4],
            "lin_l.weight": model.head.weight[:, 4:],
            "lin_l.bias": model.head.bias,
        }
    )
    expected = second(model.body.convolutions[0](x, EDGES).relu(), EDGES)[chosen]
    torch.testing.assert_close(found, expected)


def test_sgc_is_a_linear_layer_on_pygs_propagation() -> None:
    x, chosen = torch.rand(4, 3), torch.tensor([0, 2])
    model, found = logits(Sgc(hops=2), x, chosen)
    whole = SGConv(3, 2, K=2)
    whole.load_state_dict({"lin.weight": model.head.weight, "lin.bias": model.head.bias})
    torch.testing.assert_close(found, whole(x, EDGES)[chosen])
    assert not list(model.body.parameters())


def test_gat_is_attention_by_hand() -> None:
    """One head on node 0, which has the neighbor 1: α of [0, 1] by LeakyReLU(a_source · Wx_j + a_target · Wx_i)."""
    x = torch.rand(4, 3)
    model, found = logits(Gat(layers=1, hidden=2, heads=1, dropout=0.0), x, torch.tensor([0]))
    layer = model.body.convolutions[0]
    hidden = x @ layer.lin.weight.T
    scores = (hidden[:2] * layer.att_src[0]).sum(1) + (hidden[0] * layer.att_dst[0, 0]).sum()
    weights = torch.nn.functional.leaky_relu(scores, 0.2).softmax(0)
    features = torch.nn.functional.elu(weights @ hidden[:2] + layer.bias)
    torch.testing.assert_close(found, model.head(features)[None])


def test_gat_refuses_a_width_that_its_heads_do_not_divide() -> None:
    with pytest.raises(WorkloadError, match=r"divisible by heads, not 10 with 8 heads\. Nearest: hidden 8"):
        Gat(hidden=10).build(InputSpec((3,), 2, "nodes"))


def test_gamlp_weighs_hops_by_hand() -> None:
    """Of a node without edges Âx = x, so that every mean of its hops is x; of others two hops are weighed by hand."""
    x = torch.rand(4, 3)
    model, found = logits(Gamlp(hops=1, hidden=4, dropout=0.0), x, torch.tensor([3, 1]))
    spread = SGConv(3, 3, K=1, bias=False)
    torch.nn.init.eye_(spread.lin.weight)
    hop = spread(x, EDGES)[1]
    score = torch.stack([model.body.attention(torch.cat([x[1], other])).sigmoid() for other in (x[1], hop)])
    weights = score.softmax(0)
    mean = torch.stack([x[3], weights[0] * x[1] + weights[1] * hop])
    torch.testing.assert_close(found, model.head(model.body.layers[0](mean).relu()))
