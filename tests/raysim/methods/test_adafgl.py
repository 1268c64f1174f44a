"""AdaFGL: the mended graph, the networks, their messages, losses and mixture by hand; whole runs beside FedAvg."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from benchmarks.agreement import adafgl
from benchmarks.agreement.case import compared
from raysim.driver.federation_checks import only_first_rounds
from raysim.errors import ConfigError
from raysim.method import ClientTask
from raysim.methods import _personal_propagation as parts
from raysim.methods.adafgl import AdaFGL
from raysim.running.simulation import run
from raysim.workloads.federated_data import ClientData
from raysim.workloads.graphs.node_batch import NodeBatch, NodeSamples, Subgraph
from raysim.workloads.models.classifier import Classifier
from raysim.workloads.objective import Objective
from tests.long_tests import long
from tests.made_subgraphs import rings
from tests.raysim.methods.by_hand import context, sigmoid, updates
from tests.small_runs import small_run

PAIR = Subgraph(torch.tensor([[1.0], [2.0]]), torch.tensor([[0, 1], [1, 0]]))
"""Two nodes with an edge, whose features are 1 and 2."""
KNOWN = torch.tensor([[0.5, 0.5], [1.0, 0.0]])


def test_a_graph_is_mended_by_predictions() -> None:
    """Nodes 0 and 1 are alike, and 1 and 2 have an edge: row sums of αA + (1 − α)B + I are 1.75, 2 and 1.25."""
    predicted = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    found = parts.Guide.of(predicted, torch.tensor([[1, 2], [2, 1]]), 0.25, 0.99)
    assert found.alike.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    near, far = 0.75 / math.sqrt(1.75 * 2), 0.25 / math.sqrt(2 * 1.25)
    wanted = [[1 / 1.75, near, 0], [near, 1 / 2, far], [0, far, 1 / 1.25]]
    assert found.spreading.flatten().tolist() == pytest.approx(np.ravel(wanted).tolist())
    assert float(parts.cosines(predicted)[0, 1]) == pytest.approx(0.9 / math.hypot(0.9, 0.1))


def test_confidence_is_the_share_of_hidden_labels_that_are_found() -> None:
    """A path 0 − 1 − 2 − 3, where the label 0 of node 0 is known: one step reaches node 1 alone."""
    path = torch.diag(torch.ones(3), 1) + torch.diag(torch.ones(3), -1)
    start = parts.first_labels(4, 2, torch.tensor([0]), torch.tensor([0]))
    assert start.tolist() == [[1, 0], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    labels = torch.tensor([0, 1, 0])

    def spread(values: Tensor) -> Tensor:
        return path @ values

    assert parts.homophily(spread, start, 1, torch.tensor([1, 2, 3]), labels) == pytest.approx(1 / 3)
    assert parts.homophily(spread, start, 3, torch.tensor([1, 2, 3]), labels) == pytest.approx(2 / 3)
    task: Any = ClientTask(0, 1, 0, 1, 0.1, None, classes=2)  # type: ignore[arg-type]
    samples = NodeSamples(PAIR, torch.tensor([0, 1]), torch.tensor([1, 1]))
    data = ClientData(0, "pair", samples, samples)
    assert AdaFGL().score(data, task) == 1.0
    alone = NodeSamples(PAIR, torch.tensor([0]), torch.tensor([1]))
    assert AdaFGL().score(ClientData(0, "one", alone, alone), task) == 0.0  # nothing is known
    mixed = ClientData(0, "mixed", NodeSamples(PAIR, torch.tensor([0, 1]), torch.tensor([0, 1])), samples)
    assert AdaFGL(switch=0.9).score(mixed, task) == 0.0
    assert AdaFGL(switch=0.9).score(data, task) == 1.0


def test_the_first_layer_reads_all_hops() -> None:
    """2 X + P̃ · 3 X − 8 is −1.5 and 2; PReLU with slope ½ makes −0.75 and 2 of it."""
    network = parts.Network(1, 1, 1, 2, 2, 0.0)
    values = [torch.tensor([[2.0, 3.0]]), torch.tensor([-8.0]), torch.tensor([0.5])]
    values += [torch.tensor([[1.0], [-1.0]]), torch.tensor([0.0, 1.0])]
    for parameter, value in zip(network.parameters(), values, strict=True):
        parameter.data.copy_(value)
    found = network(PAIR, torch.tensor([[0.5, 0.5], [0.0, 1.0]]))
    assert found.tolist() == [[-0.75, 1.75], [2.0, -1.0]]


def test_messages_have_signs() -> None:
    related = torch.tensor([[0.0, 0.9, 0.3], [0.9, 0.0, 0.1], [0.3, 0.1, 0.0]])
    mean = 2.6 / 9
    above, below = (0.3 - mean) / (0.9 - mean), -0.1 / mean
    wanted = [1, 1, above, 1, 1, below, above, below, 1]
    assert parts.signs(related).flatten().tolist() == pytest.approx(wanted, rel=1e-4)
    assert parts.signs(torch.zeros(1, 1)).tolist() == [[1.0]]
    signed, logits = torch.tensor([[1.0, -0.5], [-0.5, 1.0]]), torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    found = parts.with_messages(logits, signed, torch.tensor([0.2]))
    # PReLU(σ) = [[1, −0.1], [−0.1, 1]], PReLU(−σ) = [[−0.2, 0.5], [0.5, −0.2]]
    assert float(found[0, 0]) == pytest.approx((sigmoid(2.1) - sigmoid(-0.9) + 2) / 2)
    assert float(found[1, 1]) == pytest.approx((sigmoid(1.2) - sigmoid(-1.2) + 1) / 2)


def networks(score: float) -> parts.PersonalNetworks:
    """Networks whose logits are (0, log 3) by H and S, and (0, 0) by F and M."""
    found = parts.PersonalNetworks(parts.Settings(1, 1, 0.0, 0.5, 0.2, 0.999), 1, 2)
    for name, parameter in found.named_parameters():
        parameter.data.zero_()
        if name in ("homophilous.layers.0.bias", "of_hops.layers.1.bias"):
            parameter.data[1] = math.log(3)
    found.register_buffer("score", torch.tensor(score))
    return found


def test_both_parts_count_by_the_score() -> None:
    guide = parts.Guide(KNOWN, torch.zeros(2, 2), torch.eye(2))
    far = (0.5 + 0.25 + 0.5) / 3
    both = 0.4 * (0.5 + 0.25) / 2 + 0.6 * far, 0.4 * (1 + 0.25) / 2 + 0.6 * far
    assert networks(0.4).predicted(PAIR, guide)[:, 0].tolist() == pytest.approx(both)
    assert networks(1.0).predicted(PAIR, guide)[:, 0].tolist() == pytest.approx([0.375, 0.625])
    assert networks(0.0).predicted(PAIR, guide)[:, 0].tolist() == pytest.approx([far, far])
    assert networks(1.0).parts == ("personal.homophilous.",) and len(networks(0.4).parts) == 4
    assert networks(0.0).parts == networks(0.4).parts[1:]


def test_losses_of_what_counts() -> None:
    guide, log3 = parts.Guide(KNOWN, torch.zeros(2, 2), torch.eye(2)), math.log(3)
    batch, labels = NodeBatch(PAIR, torch.tensor([1])), torch.tensor([0])
    near = math.log(4) + (0.25 + (log3 - 0.5) ** 2 + 1 + log3**2) / 4
    far = math.log(2) + math.log(4) + math.log(2)
    wanted = {1.0: near, 0.0: far, 0.5: near + far}
    for score, value in wanted.items():
        assert float(networks(score).loss(batch, guide, labels).detach()) == pytest.approx(value)
    # training.margin: each network's logits count, (0, log 3) of H and S and (0, 0) of F and M.
    margin = Objective(margin_weight=10.0)
    for score, norm in {1.0: log3**2, 0.0: log3**2, 0.5: 2 * log3**2}.items():
        value = wanted[score] + 10.0 * norm
        assert float(networks(score).loss(batch, guide, labels, margin).detach()) == pytest.approx(value)


class Table(nn.Module):
    """A body that knows the features of a node."""

    width = 1

    def forward(self, batch: NodeBatch) -> Tensor:
        return batch.of(batch.x)


def test_a_client_is_judged_by_the_extractor_until_it_has_a_score() -> None:
    module: Any = AdaFGL(width=2).extend(Classifier(Table(), nn.Linear(1, 2)))
    batch = NodeBatch(PAIR, torch.tensor([1]))
    wanted = module.head(torch.tensor([[2.0]]))
    assert module(batch).tolist() == wanted.tolist()
    module.head.train()
    guide = module.guide(PAIR)
    assert guide.predicted[1].tolist() == pytest.approx(wanted.softmax(1)[0].tolist()) and module.head.training
    module.personal.score.fill_(0.5)
    found = module.eval()(batch)
    assert torch.allclose(found, log_softmax(found, 1), atol=1e-6) and not torch.allclose(found, wanted.log_softmax(1))
    assert set(AdaFGL().shared_names(module)) == {"head.weight", "head.bias"}
    with pytest.raises(ConfigError, match=r"attribute width: the number of features"):
        AdaFGL().extend(nn.Linear(1, 2))


def test_the_server_stands_still_once_clients_personalize() -> None:
    method, server = AdaFGL(federated_rounds=2), np.array([1.0, 2.0], np.float32)
    given = updates(((2, 4),), (1,))
    assert method.aggregate(server, given, context(round=2)).tolist() == [3.0, 6.0]
    assert method.aggregate(server, given, context(round=3)).tolist() == [1.0, 2.0]


def test_runs_begin_as_fedavg_and_then_personalize(tmp_path: Path) -> None:
    base = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 2, "model.name": "gcn"}
    base |= {"model.hidden": 4, "schedule.rounds": 4, "training.learning_rate": 0.05}
    own = {"method__name": "adafgl", "method__federated_rounds": 2, "method__width": 4}
    found = run(small_run(tmp_path / "own", base, **own))
    plain = run(small_run(tmp_path / "fedavg", base, schedule__rounds=2))
    assert found.rounds["loss"].tolist()[:2] == plain.rounds["loss"].tolist()
    assert len(set(found.rounds["loss"])) == 4
    assert "in its first 2 rounds" in only_first_rounds(small_run(tmp_path / "few", base, **own, schedule__rounds=2))
    assert only_first_rounds(small_run(tmp_path / "more", base, **own)) == ""
    client: Any = found.client_model(0)
    average = plain.client_model(0)
    kept = dict(client.named_parameters())
    assert all(torch.equal(kept[name], value) for name, value in average.named_parameters())
    score = float(client.personal.score)
    scores = found.clients[found.clients["client"] == 0]["homophily"]
    assert scores.tolist() == [pytest.approx(score)] * 4 and 0 <= score <= 1
    alone = own | {"method__federated_rounds": 0, "schedule__rounds": 1}
    losses = [
        run(small_run(tmp_path / f"margin {weight}", base, **alone, training__margin=weight)).rounds["train_loss"][0]
        for weight in (0.0, 1.0)
    ]
    assert losses[0] < losses[1]


@long
def test_runs_agree_with_plain_code() -> None:
    [(_, case)] = adafgl.cases()
    assert compared(case).unchanged < 1e-6
