"""Graphs given in Python: what is read of PyTorch Geometric's ``Data``, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import raysim
from raysim.client_side.sharing import common_names
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.graphs.batch import collate
from raysim.workloads.graphs.federation import GraphFederation
from raysim.workloads.graphs.given_graphs import GatheredGraphs, GivenGraphs, gather_graphs, hold_graphs
from raysim.workloads.graphs.pyg_data import as_data, read_graphs
from tests.fingerprint import fingerprint
from tests.own_graphs import Net, graph, graphs

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


OPTIONS: dict[str, Any] = {"rounds": 3, "local_epochs": 1, "engine": {"backend": "inline"}, "pictures": False}


def loaded(own: GatheredGraphs, **options: Any) -> GraphFederation:
    return GivenGraphs(**options).holding(own).load(lambda purpose: np.random.default_rng(0))


def test_a_module_sees_what_it_would_see_of_pygs_batch() -> None:
    items = graphs(6)
    theirs, ours = Batch.from_data_list(items), collate(read_graphs(items, "client 0", {}))
    assert torch.equal(ours.x, theirs.x) and torch.equal(ours.batch, theirs.batch)
    assert (ours.num_graphs, ours.num_nodes) == (theirs.num_graphs, theirs.num_nodes)
    assert sorted(ours.edge_index.T.tolist()) == sorted(theirs.edge_index.T.tolist())
    torch.manual_seed(0)
    net = Net()
    torch.testing.assert_close(net(ours), net(theirs))


def test_edges_that_an_evaluation_has_asked_for_can_be_trained_with() -> None:
    batch, net = collate(read_graphs(graphs(6), "client 0", {})), Net()
    with torch.inference_mode():
        net(batch)
    net(batch).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


@pytest.mark.parametrize("model", ["gin", "spectral", Net, Net()])
def test_clients_with_lists_of_graphs_train(tmp_path: Path, model: Any) -> None:
    clients = {"ward": graphs(12), "lab": graphs(10), "home": graphs(11)}
    result = raysim.run("fedavg", model=model, clients=clients, output=str(tmp_path / "run"), **OPTIONS)
    assert len(result.rounds) == 3 and np.isfinite(result.rounds["loss"]).all()
    assert sorted(set(result.clients["name"])) == ["home", "lab", "ward"]
    assert result.config["workload"]["name"] == "given-graphs"


def test_a_run_is_the_same_again_and_goes_on_with_the_same_graphs_only(tmp_path: Path) -> None:
    def run(folder: Path, clients: Any, **more: Any) -> Any:
        where = {} if "resume" in more else {"output": str(folder)}
        return raysim.run("fedprox", model=Net, clients=clients, **(OPTIONS | where | more))

    clients = [graphs(12), graphs(9)]
    whole = run(tmp_path / "whole", clients)
    part = run(tmp_path / "part", clients, rounds=2)
    longer = run(tmp_path / "part", clients, rounds=3, resume=part.folder)
    assert fingerprint(whole.folder)["server"] == fingerprint(longer.folder)["server"]
    with pytest.raises(raysim.RaysimError, match="the data is not the one that"):
        run(tmp_path / "part", [graphs(12), graphs(8)], rounds=4, resume=part.folder)


def test_a_loss_and_metrics_of_ones_own_train_and_judge(tmp_path: Path) -> None:
    """A loss without a gradient: every round is like the first, and the loss is the one that it gives."""
    functions: dict[str, Any] = {
        "loss": lambda outputs, y: 0 * outputs.sum(dim=1) + y + 2.0,
        "metrics": {"hits": lambda outputs, y: (outputs.argmax(dim=1) == y).double()},
    }
    data: dict[str, Any] = {"clients": [graphs(12), graphs(12)], "test": [graphs(6), graphs(6)]}
    result = raysim.run("fedavg", model=Net(), output=str(tmp_path / "run"), **functions, **data, **OPTIONS)
    assert result.rounds["loss"].tolist() == [2.5] * 3
    assert result.rounds["hits"].tolist() == result.rounds["accuracy"].tolist()
    assert result.rounds["accuracy"].nunique() == 1 and "hits" in result.clients
    assert result.config["workload"]["metrics"] == ["hits"] and len(result.config["workload"]["code_digest"]) == 64


def test_the_trained_model_takes_pygs_batch(tmp_path: Path) -> None:
    clients = [graphs(12), graphs(12)]
    result = raysim.run("fedavg", model=Net, clients=clients, output=str(tmp_path / "run"), **OPTIONS)
    assert result.model(Batch.from_data_list(graphs(4))).shape == (4, 2)


def test_clients_of_other_widths_have_tasks_of_their_own(tmp_path: Path) -> None:
    own = gather_graphs([graphs(6, 3), graphs(6, 4), graphs(6, 3)])
    federation = loaded(own)
    assert len(federation.input_specs) == 3  # the third's features are as wide as the first's, and mean something else
    models = [raysim.config.registry.resolve("model", "gin")().build(task) for task in federation.input_specs]
    assert not any(name.startswith(("head.", "body.pre.")) for name in common_names(models))
    with pytest.raises(WorkloadError, match="nodes of client 0 have 3 features and those of client 1 4"):
        loaded(own, tasks="one")


def test_sets_of_one_width_can_be_tasks_of_their_own() -> None:
    own = gather_graphs({"a": graphs(6), "b": graphs(6)})
    assert len(loaded(own).input_specs) == 1
    assert loaded(own, tasks="own").input_specs == (
        InputSpec((3,), 2, "graph", "own graphs of a"),
        InputSpec((3,), 2, "graph", "own graphs of b"),
    )


def test_test_graphs_of_each_client_are_no_training_graphs() -> None:
    own = gather_graphs([graphs(6), graphs(4)], [graphs(3), graphs(2)])
    federation = loaded(own)
    assert [federation.samples(client) for client in range(2)] == [6, 4]
    assert [part.test.tolist() for part in federation.parts] == [[6, 7, 8], [4, 5]]


def test_split_cuts_a_data_set_of_graphs() -> None:
    data = graphs(40)
    parts = raysim.split(data, clients=4, partition="dirichlet", alpha=0.5, min_samples=2)
    assert isinstance(parts, list) and len(parts) == 4 and hold_graphs(parts)
    assert sorted(id(item) for part in parts for item in part) == sorted(map(id, data))
    assert raysim.split(data, sites=["x", "y"] * 20).keys() == {"x", "y"}


def test_what_is_not_used_is_said_once() -> None:
    notes: dict[str, None] = {}
    read_graphs([graph(0, edge_weight=torch.ones(8)), graph(1, edge_weight=torch.ones(8))], "client 0", notes)
    assert list(notes) == [
        "the graphs' edge weights are not used: models see node features, edges, edge_attr and labels"
    ]


def with_label(item: Data, y: torch.Tensor) -> Data:
    return Data(x=item.x, edge_index=item.edge_index, y=y)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        (lambda one: one[None], "y is one-hot, 3 numbers of each graph .* loss=torch.nn.functional.mse_loss"),
        (lambda one: one[None].long(), r"client 0, graph 0: y must be one whole number, .* is int64 \(1, 3\); if "),
        (lambda one: one, r"client 0, graph 0: float y must be .* is float32 \(3,\); if it is one-hot, give every"),
    ],
)
def test_one_hot_labels_are_refused_with_what_to_write(label: Any, words: str) -> None:
    """Floats [1, C] were learned as C numbers, without a word."""
    items = [with_label(item, label(torch.eye(3)[number % 3])) for number, item in enumerate(graphs(30))]
    with pytest.raises(WorkloadError, match=words) as caught:
        loaded(gather_graphs([items]))
    assert "give every graph its class, graph.y = graph.y.argmax()" in str(caught.value)


def test_one_hot_labels_cannot_be_split_by_class_and_what_is_advised_can() -> None:
    items = [with_label(item, torch.eye(3)[[number % 3]]) for number, item in enumerate(graphs(30))]
    with pytest.raises(WorkloadError, match=r"give every graph its class, graph.y = graph.y.argmax\(\) if they are"):
        raysim.split(items, clients=2)
    for item in items:
        item.y = item.y.argmax()
    parts = raysim.split(items, clients=2, min_samples=5)
    assert loaded(gather_graphs(parts)).input_spec(0).classes == 3


def test_classes_that_are_written_as_fractions_are_told(tmp_path: Path) -> None:
    items = [with_label(item, torch.tensor([float(number % 3)])) for number, item in enumerate(graphs(12))]
    with pytest.warns(UserWarning, match=r"For classes give every graph its class, graph.y = graph.y.long\(\)"):
        raysim.run("fedavg", model="gin", clients=[items], output=str(tmp_path / "told"), **OPTIONS)
    items[0].y += 0.5
    raysim.run("fedavg", model="gin", clients=[items], output=str(tmp_path / "numbers"), **OPTIONS)


def with_attributes(item: Data, width: int = 2) -> Data:
    """Every direction of every edge has attributes of its own, and the edges are in no order; node 0 has a loop."""
    edges = torch.cat([item.edge_index, torch.zeros(2, 1, dtype=torch.int64)], dim=1)
    generator = torch.Generator().manual_seed(edges.shape[1])
    edges = edges[:, torch.randperm(edges.shape[1], generator=generator)]
    attributes = torch.rand(edges.shape[1], width, generator=generator)
    return Data(x=item.x, edge_index=edges, edge_attr=attributes, y=item.y)


def rows(batch: Any) -> list[list[float]]:
    """Each directed edge with its attributes."""
    return sorted(torch.cat([batch.edge_index.T, batch.edge_attr], dim=1).tolist())


def test_attributes_of_edges_are_those_of_pygs_batch() -> None:
    items = [with_attributes(item) for item in graphs(6)]
    read = read_graphs(items, "client 0", {})
    assert rows(collate(read)) == rows(Batch.from_data_list(items))
    chosen = np.array([4, 1])
    assert rows(collate(read.subset(chosen))) == rows(Batch.from_data_list([items[4], items[1]]))
    assert rows(Batch.from_data_list(list(as_data(read)))) == rows(Batch.from_data_list(items))
    assert collate(read_graphs(graphs(2), "client 0", {})).edge_attr is None


def test_attributes_are_data_that_the_digest_and_the_task_know() -> None:
    items = [with_attributes(item) for item in graphs(6)]
    plain, own = gather_graphs([graphs(6)]), gather_graphs([items])
    items[3].edge_attr[2, 1] += 1
    assert len({plain.digest(), own.digest(), gather_graphs([items]).digest()}) == 3
    federation = loaded(gather_graphs([items, items]))
    assert [task.edge_width for task in federation.input_specs] == [2]
    assert rows(collate(federation.pooled().parts[0].graphs)) == rows(Batch.from_data_list(items + items))
    mixed = gather_graphs([graphs(6), items])
    assert len(loaded(mixed).input_specs) == 2
    with pytest.raises(WorkloadError, match="edges of client 0 have 0 attributes and those of client 1 2"):
        loaded(mixed, tasks="one")


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (graph(0, x=None), "client 0, graph 1: it has no x; give node features"),
        (graph(0, x=torch.full((5, 3), torch.nan)), "x must be finite numbers"),
        (graph(0, edge_index=PATH[:, :1]), "an edge is there in one direction only"),
        (graph(0, edge_index=PATH + 4), "edge_index names node 5, and there are nodes 0 to 4"),
        (graph(0, edge_index=PATH - 1), "edge_index names node -1, and there are nodes 0 to 4"),
        (graph(0, edge_index=PATH.float()), "edge_index must be integers"),
        (graph(0, y=None), "it has no y; give it one label"),
        (graph(0, y=torch.tensor([0.5])), "y is float32 (), and int64 () in graph 0"),
        (graph(0, y=torch.tensor([2**62])), "from 0 to at most 1048575, and is 4611686018427387904"),
        (graph(0, y=torch.tensor([0, 1])), "y must be one whole number"),
        (graph(0, width=4), "nodes have 4 features, and 3 in graph 0"),
        (graph(0, edge_attr=torch.ones(8, 1)), "edges have 1 attributes (edge_attr), and 0 in graph 0"),
        (
            graph(0, edge_attr=torch.ones(7, 1)),
            "edge_attr must be finite numbers [8 edges, attributes], and is float32",
        ),
        (graph(0, edge_attr=torch.full((8,), torch.inf)), "edge_attr must be finite numbers"),
    ],
)
def test_graphs_that_are_not_sound_are_refused(item: Data, text: str) -> None:
    with pytest.raises(WorkloadError, match=re.escape(text)):
        gather_graphs([[graph(0), item]])


@pytest.mark.parametrize(
    ("clients", "test", "text"),
    [
        (graphs(4), None, "cut it over clients with raysim.split"),
        ([graphs(4), []], None, "client 1: it has no graph"),
        ([graphs(4)], graphs(2), "graphs have no global test set"),
        ([graphs(4)], [graphs(2, 5)], "nodes have 5 features, and 3 in the client's training graphs"),
        (
            [graphs(4)],
            [[with_attributes(graph(0))]],
            r"edges have 2 attributes \(edge_attr\), and 0 in the client's training",
        ),
    ],
)
def test_clients_that_do_not_go_together_are_refused(clients: Any, test: Any, text: str) -> None:
    with pytest.raises(WorkloadError, match=text):
        gather_graphs(clients, test)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"model": "cnn"}, "model cnn takes arrays"),
        ({"model": lambda: Net(classes=1)}, "at least 2 outputs"),
        ({"model": lambda: Net(width=7)}, "the model cannot take the clients' graphs"),
        ({"model": Net, "metrics": {"hits": len}}, "hits: it cannot take outputs"),
        ({"model": Net, "loss": lambda outputs, y: outputs.flatten()}, "loss: it returned"),
    ],
)
def test_models_that_do_not_fit_are_refused_before_a_folder_is_made(
    tmp_path: Path, options: dict[str, Any], text: str
) -> None:
    with pytest.raises((raysim.RaysimError, WorkloadError), match=text):
        raysim.run("fedavg", clients=[graphs(6)], output=str(tmp_path / "run"), **options, **OPTIONS)
    assert not (tmp_path / "run").exists()
