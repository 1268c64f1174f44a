"""GIN, GraphSAGE and FedStar's network: against formulas, PyTorch Geometric and relabeled nodes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from raysim.config.registry import resolve
from raysim.flat_model import FlatModel, all_names
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.graphs.batch import GraphBatch
from raysim.workloads.graphs.structural_encodings import structure_encodings
from raysim.workloads.models.classifier import Classifier, has_batch_norm
from raysim.workloads.models.gnn import Convolution, GcnConvolution, GinConvolution, SageConvolution
from raysim.workloads.models.graph_specs import Gin, GraphSage, StructuralGin
from tests.made_graphs import batch_of

GRAPH_MODELS: list[Any] = [Gin(hidden=8), GraphSage(hidden=8), StructuralGin(hidden=8, walk_steps=3, degrees=2)]


PATH_AND_LOOP = batch_of([3, 1, 2], [(0, 1), (1, 2), (4, 5), (4, 4)])
"""P3, a single node, and an edge whose first node has a self-loop."""


def build(options: Any, width: int = 3, classes: int = 2) -> Classifier:
    torch.manual_seed(1)
    model: Classifier = options.build(InputSpec((width,), classes, "graph"))
    return model


def dense(batch: GraphBatch) -> Tensor:
    """The adjacency matrix [N, N]."""
    matrix = torch.zeros(len(batch.x), len(batch.x))
    for first, second in batch.edges.T.tolist():
        matrix[first, second] = matrix[second, first] = 1.0
    return matrix


def linear(layer: nn.Module, values: Tensor) -> Tensor:
    weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
    return values @ weight.T + bias


def test_gin_is_its_formula() -> None:
    model = build(Gin(layers=2, hidden=5)).eval()
    batch, body = PATH_AND_LOOP, model.body
    values = linear(body.get_submodule("pre"), batch.x)
    for layer in ("convolutions.0", "convolutions.1"):
        inner = linear(body.get_submodule(f"{layer}.first"), values + dense(batch) @ values).relu()
        values = linear(body.get_submodule(f"{layer}.second"), inner).relu()
    pooled = torch.stack([values[:3].sum(0), values[3], values[4:].sum(0)])
    features = linear(body.get_submodule("post"), pooled).relu()
    torch.testing.assert_close(body(batch), features)
    torch.testing.assert_close(model(batch), linear(model.head, features))


def test_gin_by_hand() -> None:
    # Every weight one, every bias zero, features 1: P3 has sums 2, 3, 2 with the node itself, the single node 1;
    # one layer keeps them (1 hidden unit), so the read-outs are 2 + 3 + 2 and 1.
    model = Gin(layers=1, hidden=1, dropout=0.0).build(InputSpec((1,), 1, "graph"))
    for name, parameter in model.named_parameters():
        nn.init.constant_(parameter, 0.0 if name.endswith("bias") else 1.0)
    batch = batch_of([3, 1], [(0, 1), (1, 2)], width=1)
    ones = GraphBatch(torch.ones(4, 1), batch.batch, 2, batch.edges)
    assert model(ones).tolist() == [[7.0], [1.0]]


def test_a_layer_leaves_no_file_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Sum(Convolution):
        """One that PyG has not met yet."""

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    layer = Sum("sum")
    assert "Sum" in layer.propagate.__module__ and list(tmp_path.iterdir()) == []


def test_convolutions_equal_those_of_pytorch_geometric() -> None:
    from torch_geometric.nn import GCNConv, GINConv, SAGEConv

    batch = PATH_AND_LOOP
    directed = batch.edge_index
    torch.manual_seed(0)
    ours_gin = GinConvolution(3, 4)
    theirs = GINConv(nn.Sequential(ours_gin.first, nn.ReLU(), ours_gin.second))
    state = {name: value.clone() for name, value in ours_gin.state_dict().items()}
    ours_gin.load_state_dict(state)  # PyG's constructor draws new values for the layers it is given
    torch.testing.assert_close(ours_gin(batch.x, directed), theirs(batch.x, directed))
    ours_sage, sage = SageConvolution(3, 4), SAGEConv(3, 4)
    sage.load_state_dict(
        {
            "lin_l.weight": ours_sage.neighbors.weight,
            "lin_l.bias": ours_sage.neighbors.bias,
            "lin_r.weight": ours_sage.own.weight,
        }
    )
    torch.testing.assert_close(ours_sage(batch.x, directed), sage(batch.x, directed))
    ours_gcn, gcn = GcnConvolution(3, 4), GCNConv(3, 4)
    nn.init.normal_(ours_gcn.bias)
    gcn.load_state_dict({"bias": ours_gcn.bias, "lin.weight": ours_gcn.linear.weight})
    torch.testing.assert_close(ours_gcn(batch.x, directed), gcn(batch.x, directed))


def test_structural_gin_is_its_formula() -> None:
    model = build(StructuralGin(layers=2, hidden=4, walk_steps=5, degrees=3)).eval()
    batch, body = PATH_AND_LOOP, model.body
    own = dense(batch).fill_diagonal_(1.0)  # GCN: exactly one self-loop at every node
    scale = own.sum(1).rsqrt()
    own = scale[:, None] * own * scale
    values = linear(body.get_submodule("pre"), batch.x)
    state = linear(body.get_submodule("structure.embedding"), structure_encodings(batch, 5, 3))
    for layer in range(2):
        both = torch.cat([values, state], dim=1)
        inner = linear(body.get_submodule(f"convolutions.{layer}.first"), both + dense(batch) @ both).relu()
        values = linear(body.get_submodule(f"convolutions.{layer}.second"), inner).relu()
        convolution = body.get_submodule(f"structure.convolutions.{layer}")
        weight, bias = convolution.get_parameter("linear.weight"), convolution.get_parameter("bias")
        state = (own @ state @ weight.T + bias).tanh()
    joined = linear(body.get_submodule("join"), torch.cat([values, state], dim=1))
    pooled = torch.stack([joined[:3].sum(0), joined[3], joined[4:].sum(0)])
    torch.testing.assert_close(body(batch), linear(body.get_submodule("post"), pooled).relu())


@pytest.mark.parametrize("options", GRAPH_MODELS, ids=lambda options: options.name)
def test_names_shapes_and_what_clients_of_other_widths_can_share(options: Any) -> None:
    assert resolve("model", options.name) is type(options)
    one, other = build(options, 3, 2), build(options, 7, 5)
    assert isinstance(one, Classifier) and type(one.head) is nn.Linear and not has_batch_norm(one)
    assert one.body(PATH_AND_LOOP).shape == (3, 8) and one(PATH_AND_LOOP).shape == (3, 2)
    assert not list(one.named_buffers())
    shapes = [{name: value.shape for name, value in model.named_parameters()} for model in (one, other)]
    assert shapes[0].keys() == shapes[1].keys()
    differ = {name for name in shapes[0] if shapes[0][name] != shapes[1][name]}
    assert differ == {"body.pre.weight", "head.weight", "head.bias"}


@pytest.mark.parametrize("options", GRAPH_MODELS, ids=lambda options: options.name)
def test_order_of_nodes_edges_and_graphs_does_not_count(options: Any) -> None:
    model = build(options).eval()
    sizes = [4, 1, 3, 2]
    edges = [(0, 1), (1, 2), (2, 3), (0, 2), (5, 6), (6, 6), (8, 9)]
    batch = batch_of(sizes, edges)
    expected = model(batch)
    random = np.random.default_rng(5)
    order = np.array([2, 0, 3, 1])  # the graphs' new order
    starts = np.cumsum([0, *sizes])
    new_nodes = np.concatenate([random.permutation(np.arange(starts[g], starts[g + 1])) for g in order])
    place = np.argsort(new_nodes)
    moved = place[np.array(edges)][random.permutation(len(edges))]
    flipped = np.sort(moved, axis=1)
    graph = torch.from_numpy(np.repeat(np.arange(4), np.array(sizes)[order]))
    again = GraphBatch(batch.x[torch.from_numpy(new_nodes)], graph, 4, torch.from_numpy(flipped.T.copy()))
    torch.testing.assert_close(model(again), expected[torch.from_numpy(order)], rtol=1e-5, atol=1e-6)
    # A graph's output does not depend on the others of its batch.
    alone = GraphBatch(batch.x[:4], torch.zeros(4, dtype=torch.int64), 1, batch.edges[:, :4])
    torch.testing.assert_close(model(alone), expected[:1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", GRAPH_MODELS, ids=lambda options: options.name)
def test_single_nodes_and_no_edges_train_in_the_flat_buffer(options: Any) -> None:
    model = build(options)
    flat = FlatModel(model, all_names(model))
    for sizes in ([1], [1, 1, 1], [2, 1]):
        batch = batch_of(sizes, [])
        flat.gradient.zero_()
        logits = model(batch)
        assert logits.shape == (len(sizes), 2)
        nn.functional.cross_entropy(logits, torch.zeros(len(sizes), dtype=torch.int64)).backward()
        assert flat.gradient.isfinite().all()
    model.eval()
    batch = batch_of([3, 2], [(0, 1)])
    nn.functional.cross_entropy(model(batch), torch.tensor([0, 1])).backward()
    assert flat.gradient.abs().sum() > 0
    before = model(batch)
    with torch.no_grad():
        flat.parameters.sub_(0.01 * flat.gradient)  # the module sees the buffer
    assert not torch.equal(model(batch), before)


@pytest.mark.parametrize("options", [Gin(dropout=0.5), Gin(dropout=0.0)], ids=["dropout", "none"])
def test_dropout_acts_in_training_only(options: Any) -> None:
    model = build(options)
    batch = PATH_AND_LOOP
    assert torch.equal(model(batch), model(batch)) == (options.dropout == 0.0)
    model.eval()
    assert torch.equal(model(batch), model(batch))
