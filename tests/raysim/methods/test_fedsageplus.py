"""FedSage+: parts of the generator's losses and the mended graph by hand; whole runs beside plain code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from raysim.methods import _missing_neighbors as parts
from raysim.methods.fedsageplus import FedSagePlus, Mended
from raysim.running.simulation import run
from raysim.workloads.federated_data import NO_SAMPLES, ChangedSamples, ClientData
from raysim.workloads.graphs.node_batch import NodeSamples, Subgraph
from raysim.workloads.models.dropout import GeneratorDropout
from raysim.wrappers.attack import attacker_of
from tests.made_subgraphs import by_hand, rings
from tests.small_runs import small_run, worker_of

STAR = Subgraph(torch.tensor([[1.0], [2.0], [3.0], [4.0]]), torch.tensor([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]]))
"""Node 0 with neighbors 1, 2 and 3, whose features are 1, 2, 3 and 4."""


def client(validation: Any = NO_SAMPLES) -> ClientData:
    """Node 0 to train with, 1 to test with."""
    train, test = (NodeSamples(STAR, torch.tensor([node]), torch.tensor([node])) for node in (0, 1))
    return ClientData(0, "client 0", train, test, validation)


def test_hidden_neighbors_are_what_is_missing() -> None:
    found = parts.impaired(STAR, torch.tensor([1, 3]), 1, torch.tensor([0]), torch.tensor([5]))
    assert found.x.tolist() == [[1.0], [3.0]] and found.edges.tolist() == [[0, 1], [1, 0]]
    assert found.counts.tolist() == [2, 0] and found.neighbors.tolist() == [[[2.0]], [[0.0]]]
    assert found.train.tolist() == [0] and found.labels.tolist() == [5]


def test_distance_to_the_nearest_missing_neighbor() -> None:
    """Two made neighbors of the first node count, and one true; the second has no true one; the third counts none."""
    made = torch.tensor([[[0.0, 0.0], [3.0, 1.0]]]).repeat(3, 1, 1)
    true = torch.tensor([[[1.0, 0.0], [3.0, 1.0]]]).repeat(3, 1, 1)
    found = parts.nearest(made, torch.tensor([2, 2, 0]), true, torch.tensor([1, 0, 2]))
    assert float(found) == pytest.approx(0.5 + (4 + 1) / 2)
    assert float(parts.nearest(made[:1], torch.tensor([2]), true[:1], torch.tensor([2]))) == pytest.approx(0.5)


def test_neighbors_that_count_are_joined_to_their_nodes() -> None:
    numbers, nodes = torch.tensor([1.9, 0.4, 7.0]), torch.tensor([0, 2])
    rows, places = parts.chosen(numbers, nodes, 2)
    assert rows.tolist() == [0, 1, 1] and places.tolist() == [0, 0, 1]
    x, edges = parts.joined(torch.zeros(3, 1), torch.tensor([[0, 1], [1, 0]]), nodes[rows], torch.ones(3, 1))
    assert x.flatten().tolist() == [0, 0, 0, 1, 1, 1]
    assert edges.tolist() == [[0, 1, 0, 2, 2, 3, 4, 5], [1, 0, 3, 4, 5, 0, 2, 2]]
    dense = parts.averaging(torch.tensor([[0, 1], [1, 0]]), 3).rows.to_dense()
    assert dense.tolist() == [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]


def test_losses_are_those_of_plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dropout and with a bias by which every node is given two neighbors; other clients' draws are replayed."""
    monkeypatch.setattr(parts, "DROPOUT", 0.0)
    torch.manual_seed(0)
    generator = parts.Generator(1, 3, 2, 4)
    assert type(generator.dropout) is GeneratorDropout  # not torch's, whose draws are other ones on Intel's processors
    generator.degree.bias.data.fill_(2.2)
    generator.degree.weight.data.mul_(0.01)
    part = parts.impaired(STAR, torch.tensor([1]), 2, torch.tensor([0, 2]), torch.tensor([1, 2]))
    shown = torch.tensor([[7.0], [9.0], [11.0]])
    means = parts.averaging(part.edges, 3)
    torch.manual_seed(1)
    found = parts.Training(part, (), 0.1, 1).loss(generator, means, (shown,)).detach()
    torch.manual_seed(1)
    numbers, _, made = (value.detach() for value in generator.missing(part.x, means))
    drawn = torch.randint(3, (2, 2))
    apart = 0.0
    for p in range(2):  # of node 0, whose one missing neighbor has the feature 2; node 2 misses none
        apart += float((made[0, p] - 2.0) ** 2) + float((made[0, p] - shown[drawn[0, 0]]) ** 2)
    dense = torch.zeros(9, 9)
    for one, other in [*part.edges.T.tolist(), *((v, 3 + 2 * v + p) for v in range(3) for p in range(2))]:
        dense[one, other] = dense[other, one] = 1.0
    dense = dense + torch.eye(9)
    dense = dense / dense.sum(1, keepdim=True)
    x = torch.cat([part.x, made.flatten(0, 1)])
    layers: Any = generator.requires_grad_(False).classifier
    first, second = layers
    logits = dense @ second((dense @ x @ first.weight.T + first.bias).relu())
    wanted = cross_entropy(logits[[0, 1]], part.labels) + apart / 4
    wanted = wanted + torch.nn.functional.smooth_l1_loss(numbers[[0, 1]], torch.tensor([1.0, 0.0]))
    assert part.train.tolist() == [0, 1]
    assert float(found) == pytest.approx(float(wanted), rel=1e-5)


def test_hidden_nodes_and_generated_neighbors_of_a_client() -> None:
    method = FedSagePlus(generator_epochs=2, hidden_share=1.0, width=4)
    assert sorted(method.hidden(client(), STAR, torch.tensor([0])).tolist()) == [1, 2, 3]
    validation = NodeSamples(STAR, torch.tensor([2]), torch.tensor([0]))
    assert method.hidden(client(validation), STAR, torch.tensor([0])).tolist() == [2]
    assert replace(method, hidden_share=0.3).hidden(client(), STAR, torch.tensor([0])).numel() == 0
    torch.manual_seed(0)
    state = method.mended(client(), 2)
    torch.manual_seed(0)
    again = method.mended(client(), 2)
    assert state.made == 1 and np.array_equal(state.features, again.features)
    assert state.features.shape == (len(state.centers),) and (np.abs(state.features) <= 1).all()


def test_a_client_is_judged_on_its_mended_graph() -> None:
    state = Mended(np.array([3, 0]), np.array([5.0, 6.0], np.float32), 1)
    data = FedSagePlus().judged_data(client(), state)
    (batch,) = data.test.batches(10)
    assert batch.x.nodes.tolist() == [1] and batch.x.x.flatten().tolist() == [1, 2, 3, 4, 5, 6]
    assert batch.x.edge_index[:, 6:].tolist() == [[3, 0, 4, 5], [4, 5, 3, 0]]
    assert data.validation is NO_SAMPLES
    flipped = ChangedSamples(client().train, lambda batch: replace(batch, y=1 - batch.y))
    twice = ChangedSamples(flipped, lambda batch: replace(batch, y=batch.y + 5))
    (batch,) = FedSagePlus().judged_data(replace(client(), train=twice), state).train.batches(10)
    assert batch.x.x.flatten().tolist() == [1, 2, 3, 4, 5, 6] and batch.y.tolist() == [6]
    untouched = client()
    assert FedSagePlus().judged_data(untouched, Mended(np.zeros(0, np.int64), np.zeros(0, np.float32))) is untouched


def test_a_malicious_client_trains_on_its_mended_graph(tmp_path: Path) -> None:
    options = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 2, "model.name": "sage"}
    options |= {"method.name": "fedsageplus", "attack.kind": "label-flip", "attack.malicious": (0,)}
    worker = worker_of(small_run(tmp_path / "run", options))
    data = worker.data(0)
    (plain,) = data.train.batches(100)
    state = Mended(np.array([1, 2]), np.zeros(4, np.float32), 1)
    poisoned = attacker_of(worker.config.attack).poisoned(data, 2)
    (batch,) = worker.config.method.judged_data(poisoned, state).train.batches(100)
    assert batch.x.graph.num_nodes == plain.x.graph.num_nodes + 2
    assert torch.equal(batch.y, 1 - plain.y)


def test_what_clients_show_is_theirs_and_counts() -> None:
    """Client 0 has edges 0 − 2 − 4, client 1 has 1 − 3: each shows its first node by its draws."""
    hand = by_hand()
    shown = hand.neighbors_of_each(1, lambda name: np.random.default_rng(0))
    assert np.array_equal(hand.owners[shown], [0, 1][: len(shown)] if shown[0] % 2 == 0 else [1, 0])
    federation = replace(hand, shown=np.array([0, 1, 3]))
    assert [federation.exchanged_bytes(client) for client in (0, 1)] == [(8, 16), (16, 8)]
    (batch,) = federation.client(0, "cpu").train.batches(10)
    assert [part.tolist() for part in batch.x.graph.elsewhere] == [[[2, 3], [6, 7]]]
    assert federation.pooled().exchanged_bytes(0) == (0, 0)


def test_runs_mend_once_and_without_a_generator_are_fedavg(tmp_path: Path) -> None:
    base = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 2, "model.name": "sage"}
    base |= {"model.hidden": 4, "schedule.rounds": 3, "method.name": "fedsageplus", "method.width": 8}
    base |= {"workload.partition": "louvain", "workload.split": "random", "workload.test_share": 0.7}
    base |= {"workload.validation_share": 0.0, "method.hidden_share": 1.0}
    base |= {"method.generator_epochs": 30, "method.generator_rate": 0.05}
    mended = run(small_run(tmp_path / "mended", base))
    counts = mended.clients.pivot(index="round", columns="client", values="generated_neighbors")
    assert (counts == counts.iloc[0]).all().all() and counts.iloc[0].sum() > 0
    none = {"method__width": None, "method__generator_rate": None, "method__hidden_share": None}
    plain = run(small_run(tmp_path / "none", base, method__generator_epochs=0, **none))
    options = {"method__generator_epochs": None, "workload__exchange": "samples", **none}
    average = run(small_run(tmp_path / "fedavg", base, method__name="fedavg", **options))
    assert plain.rounds["loss"].tolist() == average.rounds["loss"].tolist()
    assert mended.rounds["loss"].iloc[0] != plain.rounds["loss"].iloc[0]
    extra = plain.rounds["bytes_up"].diff().iloc[1:].tolist()
    assert extra == [-4 * 2 * 60, 0]  # every node of the rings has a neighbor, and none is left out
