"""Node classification: a graph of two rings, cut over clients by hand and at random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from raysim.launch import main
from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.graphs.node_graph import TEST, TRAIN, VALIDATION
from raysim.workloads.graphs.nodes import Nodes
from tests.fingerprint import fingerprint
from tests.made_subgraphs import by_hand, rings
from tests.small_runs import small_run
from tests.workloads.conftest import Stream


def test_a_client_has_its_nodes_and_the_edges_between_them() -> None:
    federation = by_hand()
    assert federation.input_spec(0) == InputSpec((2,), 2, "nodes")
    data = federation.client(0, "cpu")
    [train], [test], [validation] = (list(part.batches(9)) for part in (data.train, data.test, data.validation))
    for batch, node, label in ((train, 0, 0), (test, 1, 1), (validation, 2, 1)):
        assert batch.x.nodes.tolist() == [node] and batch.y.tolist() == [label] and len(batch) == 1
        assert batch.x.x.tolist() == [[0, 1], [4, 5], [8, 9]] and batch.x.num_nodes == 3
        assert batch.x.edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]
    assert federation.client(1, "cpu").train.batches(1).__next__().x.edge_index.tolist() == [[0, 1], [1, 0]]
    assert not len(federation.client(1, "cpu").test)
    table = federation.manifest()
    assert table["nodes"].tolist() == [3, 2] and table["edges"].tolist() == [2, 1]
    assert table["cut_edges"].tolist() == [2, 2] and table["homophily"].tolist() == [0.5, 0.0]
    assert table["samples"].tolist() == [1, 1] and table["validation_samples"].tolist() == [1, 0]


def test_the_union_has_the_edges_between_clients_again() -> None:
    whole = by_hand().pooled()
    [batch] = whole.client(0, "cpu").train.batches(9)
    assert whole.clients == 1 and whole.samples(0) == 2 and batch.x.edge_index.shape == (2, 10)


def test_mini_batches_hold_each_training_node_once(tmp_path: Path, stream: Stream) -> None:
    samples = Nodes(path=rings(tmp_path), clients=2).load(stream).client(0, "cpu").train
    generator = torch.Generator().manual_seed(0)
    batches = list(samples.batches(4, generator))
    nodes = torch.cat([batch.x.nodes for batch in batches]).tolist()
    [whole] = samples.batches(1)
    assert len(batches) > 1 and nodes != sorted(nodes) and sorted(nodes) == whole.x.nodes.tolist()
    labels = dict(zip(whole.x.nodes.tolist(), whole.y.tolist(), strict=True))
    assert [labels[node] for node in nodes] == torch.cat([batch.y for batch in batches]).tolist()


@pytest.mark.parametrize("partition", ["iid", "dirichlet"])
def test_every_node_has_one_client_and_the_note_counts_lost_edges(
    partition: Any, tmp_path: Path, stream: Stream
) -> None:
    options = Nodes(path=rings(tmp_path), clients=3, partition=partition, split="random", test_share=0.25)
    federation = options.load(stream)
    table = federation.manifest()
    assert table["nodes"].sum() == 60 and (table["samples"] > 0).all()
    if partition == "iid":
        assert table["nodes"].tolist() == [20] * 3 and table["test_samples"].tolist() == [5] * 3
        assert table["samples"].tolist() == [11] * 3
    lost = f"rings: {60 - table['edges'].sum()} of 60 edges join nodes of two clients and are left out"
    assert federation.notes[0] == lost
    assert np.array_equal(options.sketch(stream).owners, federation.owners)
    assert np.allclose(federation.graph.features.sum(axis=1), 1)


def test_shares_of_the_whole_graph(tmp_path: Path, stream: Stream) -> None:
    options = Nodes(path=rings(tmp_path), clients=3, split="overall", test_share=0.4, validation_share=0.35)
    federation = options.load(stream)
    assert np.bincount(federation.roles, minlength=4).tolist() == [0, 15, 21, 24]
    assert len({federation.test_samples(client) for client in range(3)}) > 1  # by the whole graph, not by client


def test_the_published_split_is_kept(tmp_path: Path, stream: Stream) -> None:
    federation = Nodes(path=rings(tmp_path), clients=2).load(stream)
    assert federation.roles.tolist() == [TRAIN, VALIDATION, TEST] * 20


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clients": 21}, "60 nodes cannot be cut over clients = 21 .* at least 3 each; set clients to at most 20"),
        ({"clients": 20}, "have no node to train on .*; take fewer clients, or set split to random"),
        ({"path": "nowhere"}, "no file or folder nowhere"),
        ({"path": ""}, "looks for cora in \\$RAYSIM_DATA, which is not set; set path"),
    ],
)
def test_what_cannot_be(
    options: Any, words: str, tmp_path: Path, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAYSIM_DATA", raising=False)
    with pytest.raises(WorkloadError, match=words):
        Nodes(**({"path": rings(tmp_path)} | options)).load(stream)


@dataclass(frozen=True)
class Attention:
    """A network that is written for PyTorch Geometric, as a model of one's own."""

    def build(self, inputs: InputSpec) -> nn.Module:
        from torch_geometric.nn import GAT

        from raysim.workloads.models.node_networks import OfNodes

        return OfNodes(GAT(inputs.input_shape[0], 4, 2, inputs.classes))


@pytest.mark.parametrize("model", ["gcn", f"{__name__}:Attention"])
def test_a_run_learns_and_goes_on_after_a_stop(model: str, tmp_path: Path) -> None:
    base = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 3, "model.name": model}
    base |= {"schedule.rounds": 6, "training.learning_rate": 0.05}
    whole = run(small_run(tmp_path / "whole", base))
    assert whole.rounds["accuracy"].iloc[-1] > 0.9 and "validation_accuracy" in whole.rounds
    run(small_run(tmp_path / "parts", base, schedule__rounds=3))
    run(small_run(tmp_path / "parts", base), resume=tmp_path / "parts")
    assert fingerprint(tmp_path / "whole") == fingerprint(tmp_path / "parts")


@pytest.mark.parametrize(
    ("damage", "options", "words"),
    [
        (b"no zip", (), "it is no graph of nodes with classes"),
        (None, ("--model=gin",), "takes graphs, but the clients of workload nodes have nodes of one graph. Models for"),
        (None, ("--clients=20",), "have no node to train on"),
    ],
)
def test_bad_data_ends_before_anything_is_written(
    damage: bytes | None,
    options: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = rings(tmp_path)
    if damage:
        Path(path).write_bytes(damage)
    monkeypatch.chdir(tmp_path)
    assert main(["--method=fedavg", "--workload=nodes", f"--path={path}", "--engine.backend=inline", *options]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1 and [*tmp_path.iterdir()] == [tmp_path / "rings.npz"]


@pytest.mark.parametrize("partition", ["louvain", "metis"])
def test_cuts_along_edges_part_the_rings(partition: Any, tmp_path: Path, stream: Stream) -> None:
    """Two rings and two clients: METIS gives each client one; Louvain's pieces of rings leave out few edges."""
    if partition == "metis":
        pytest.importorskip("pymetis")
    federation = Nodes(path=rings(tmp_path), clients=2, partition=partition, slack=5).load(stream)
    table = federation.manifest()
    assert table["nodes"].sum() == 60 and table["cut_edges"].max() <= (0 if partition == "metis" else 8)
    again = Nodes(path=rings(tmp_path), clients=2, partition=partition, slack=5).load(stream)
    assert (again.owners == federation.owners).all()


def test_too_many_clients_for_a_cut(tmp_path: Path, stream: Stream) -> None:
    with pytest.raises(WorkloadError, match=r"leaves a client \d of its 60 nodes, .* take fewer clients than 30"):
        Nodes(path=rings(tmp_path), clients=30, partition="louvain", slack=0).load(stream)


def test_a_cut_from_a_file(tmp_path: Path, stream: Stream) -> None:
    owners = np.arange(60) % 3
    (tmp_path / "cut.txt").write_text("\n".join(map(str, owners)))
    options: Any = {"partition": "file", "owners": str(tmp_path / "cut.txt"), "split": "random"}
    federation = Nodes(path=rings(tmp_path), clients=3, **options).load(stream)
    assert (federation.owners == owners).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\n1\n", "has 2 lines, and the graph 60 nodes"),
        ("a\n" * 60, "no client number in each line"),
        ("9" * 40 + "\n" + "0\n" * 59, "no client number in each line"),
        ("3\n" * 60, "clients are 3 to 3, and with workload.clients 2 each of 0 to 1 needs at least 3"),
        ("-1\n" * 60, "clients are -1 to -1"),
        ("9" * 15 + "\n" + "0\n" * 59, "clients are 0 to 9{15}"),
    ],
)
def test_a_file_that_is_no_cut(text: str, message: str, tmp_path: Path, stream: Stream) -> None:
    (tmp_path / "cut.txt").write_text(text)
    with pytest.raises(WorkloadError, match=message):
        Nodes(path=rings(tmp_path), clients=2, partition="file", owners=str(tmp_path / "cut.txt")).load(stream)


@pytest.mark.parametrize("options", [{"partition": "file"}, {"owners": "cut.txt"}])
def test_a_file_and_its_partition_go_together(options: dict[str, Any]) -> None:
    with pytest.raises(WorkloadError, match="--partition file --owners FILE"):
        Nodes(**options)


def test_the_largest_component_alone(tmp_path: Path, stream: Stream) -> None:
    federation = Nodes(path=rings(tmp_path), clients=2, component="largest", split="random").load(stream)
    assert federation.graph.edges.shape == (2, 30) and set(federation.graph.labels.tolist()) == {0}
