"""Link prediction: pairs of a client's nodes, and networks that pass over the edges of training alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from raysim.errors import ConfigError
from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.node_batch import PairBatch, Subgraph
from raysim.workloads.graphs.nodes import Nodes
from raysim.workloads.models.node_specs import Gamlp, Gcn
from tests.made_subgraphs import rings
from tests.small_runs import small_run
from tests.workloads.conftest import Stream


def test_pairs_are_a_clients_edges_and_as_many_others(tmp_path: Path, stream: Stream) -> None:
    options = Nodes(path=rings(tmp_path), clients=2, partition="louvain", task="links", test_share=0.3)
    federation: Any = options.load(stream)
    assert federation.class_names == ("no edge", "edge") and federation.input_spec(0).pairs
    whole = {tuple(edge) for edge in federation.graph.edges.T.tolist()}
    seen: set[tuple[int, ...]] = set()
    for client in range(2):
        data, own = federation.client(client, "cpu"), np.flatnonzero(federation.owners == client)
        count = federation.own_edges(client).shape[1]
        known = {tuple(sorted(edge)) for edge in own[data.train.graph.edge_index].T.tolist()}
        sizes = {}
        for part in ("train", "validation", "test"):
            [batch] = getattr(data, part).batches(999)
            pairs = own[torch.stack(batch.x.ends).numpy()].T.tolist()
            sizes[part] = len(pairs)
            for pair, label in zip(pairs, batch.y.tolist(), strict=True):
                assert (tuple(pair) in whole) == bool(label) and tuple(pair) not in seen
                assert (tuple(pair) in known) == (part == "train" and bool(label))  # no test edge is passed over
                seen.add(tuple(pair))
            assert batch.y.float().mean() == 0.5
        assert sizes["test"] == 2 * round(0.3 * count) == federation.test_samples(client)
        assert sum(sizes.values()) == 2 * count and sizes["train"] == federation.samples(client) == data.samples
    table = federation.manifest()
    assert (table["class_0"] == table["class_1"]).all() and table["edges"].sum() + table["cut_edges"].sum() // 2 == 60
    pooled = federation.pooled()
    assert federation.split_table().splitlines()[1].endswith(",unused")
    assert pooled.samples(0) == federation.total_samples(2) and len(pooled.client(0, "cpu").train) == pooled.samples(0)


def test_a_few_edges_are_in_all_parts(tmp_path: Path, stream: Stream) -> None:
    """Four edges of each of twelve clients, of which shares are 0.4 and 3.4: rounded, none would be trained with."""
    (tmp_path / "cut.txt").write_text("\n".join(str(node // 5) for node in range(60)))
    cut: Any = {"partition": "file", "owners": str(tmp_path / "cut.txt"), "clients": 12, "task": "links"}
    federation = Nodes(path=rings(tmp_path), **cut, validation_share=0.1, test_share=0.85).load(stream)
    assert [federation.samples(client) for client in range(12)] == [2] * 12
    assert [federation.test_samples(client) for client in range(12)] == [4] * 12


@pytest.mark.parametrize("options", [Gcn(hidden=4, dropout=0.0), Gamlp(hidden=4, dropout=0.0)])
def test_a_pair_is_the_product_of_its_nodes(options: Any, tmp_path: Path, stream: Stream) -> None:
    federation = Nodes(path=rings(tmp_path), clients=2, task="links").load(stream)
    model = options.build(federation.input_spec(0))
    graph = Subgraph(torch.rand(4, 2), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    pairs = PairBatch(graph, torch.tensor([0, 3]), torch.tensor([1, 2]))
    features = [model.body(PairBatch(graph, nodes, nodes)).sqrt() for nodes in pairs.ends]  # ReLU: of one sign
    torch.testing.assert_close(model(pairs), model.head(features[0] * features[1]))


def test_a_run_learns_links_and_what_cannot_be_is_said(tmp_path: Path) -> None:
    base = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 2, "model.name": "gcn"}
    base |= {"workload.task": "links", "workload.partition": "louvain", "schedule.rounds": 3, "evaluation.auc": True}
    result = run(small_run(tmp_path / "run", base))
    assert {"accuracy", "auc", "validation_accuracy"} <= set(result.rounds)
    assert result.rounds["train_loss"].iloc[-1] < result.rounds["train_loss"].iloc[0]
    with pytest.raises(ConfigError, match=r"method fedgta learns classes of nodes .* have pairs of nodes"):
        run(small_run(tmp_path / "gta", base, method__name="fedgta"))
    with pytest.raises(WorkloadError, match=r"client 0 has . edges between . nodes, and links need at least"):
        run(small_run(tmp_path / "few", base, workload__clients=20, workload__partition="iid"))
    with pytest.raises(WorkloadError, match="exchange looks at edges that task links must not know; set it to none"):
        Nodes(task="links", exchange="one_hop")
