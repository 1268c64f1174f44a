"""FedGTA: what a client sends and how the server mixes, by hand; whole runs are beside plain float64 code."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from benchmarks.agreement import subgraphs
from benchmarks.agreement.case import compared
from raysim.errors import ConfigError
from raysim.method import Message, Update, Updates
from raysim.methods._model_for_each import Server
from raysim.methods.fedgta import FedGTA, confidence, known
from raysim.running.simulation import run
from raysim.workloads.graphs.node_batch import NodeSamples, Subgraph
from tests.long_tests import long
from tests.made_subgraphs import rings
from tests.raysim.methods.by_hand import context, sigmoid
from tests.small_runs import LOGISTIC, small_run

SPREAD = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
"""Â of two nodes with an edge."""


def test_labels_and_predictions_are_spread() -> None:
    """Y⁰ = [[1, 0], [0, 1]], as node 0 is known; one step gives ½ Y⁰ + ½ Â Y⁰."""
    predicted = torch.tensor([[0.3, 0.7], [0.0, 1.0]])
    method = FedGTA(steps=1)
    found = method.propagated(lambda values: SPREAD @ values, predicted, torch.tensor([0]), torch.tensor([0]))
    assert found.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    again = FedGTA(steps=2).propagated(lambda values: SPREAD @ values, predicted, torch.tensor([0]), torch.tensor([0]))
    assert again.tolist() == found.tolist()  # Â of their mean is the same
    assert known(predicted, torch.tensor([1]), torch.tensor([0])).tolist() == [pytest.approx([0.3, 0.7]), [1.0, 0.0]]


def test_confidence_and_moments() -> None:
    sure, half = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]])
    assert confidence(sure, torch.tensor([3])) == pytest.approx(3 * 2 / math.e)
    assert confidence(half, torch.tensor([3])) == pytest.approx(3 * (2 / math.e - math.log(2)), rel=1e-6)
    both = FedGTA(orders=2).moments_of(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    assert both.tolist() == [0.75, 0.25, 0.625, 0.125, 0.0, 0.0, 0.0625, 0.0625]
    assert len(FedGTA(orders=3, moments="raw").moments_of(sure)) == 6


def test_what_a_client_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Node 0 is known and node 1 predicted as (¼, ¾), so that Y¹ of node 1 is (0.4375, 0.5625); d̃ of both is 2."""
    graph = Subgraph(torch.zeros(2, 1), torch.tensor([[0, 1], [1, 0]]))
    data: Any = SimpleNamespace(train=NodeSamples(graph, torch.tensor([0]), torch.tensor([0])))
    network = Mock(return_value=torch.tensor([[0.0, 0.0], [0.0, math.log(3)]]))
    given: Any = (SimpleNamespace(module=network), data, Message(np.zeros(1, np.float32)), None, None)
    trained = Update(np.ones(1, np.float32), {"loss": 2.0})
    monkeypatch.setattr("raysim.training.local_sgd.local_update", lambda *_: trained)
    update, _ = FedGTA(steps=1, orders=1, moments="raw", temperature=2.0).train(*given)
    first, sure = sigmoid(-0.125), sigmoid(-0.125 / 2)
    assert update.extra["moments"].tolist() == pytest.approx([(1 + first) / 2, (1 - first) / 2])
    unsure = sure * math.log(sure) + (1 - sure) * math.log(1 - sure)
    assert update.extra["confidence"].tolist() == pytest.approx([2 * (2 / math.e) + 2 * (2 / math.e + unsure)])
    assert update.delta is trained.delta and update.metrics == {"loss": 2.0}


def test_clients_with_similar_moments_are_averaged_by_confidence() -> None:
    """Clients 0 and 2 are alike; client 1 is by itself. 0 starts from its own model, the others from the mean."""
    moments, sure = ([1.0, 0.0], [0.0, 1.0], [1.0, 0.1]), (3.0, 5.0, 1.0)
    each = tuple(
        Update(np.array([change], np.float32), {}, {"moments": np.array(m), "confidence": np.array([h])})
        for change, m, h in zip((1.0, 2.0, 4.0), moments, sure, strict=True)
    )
    server = Server(np.array([10.0], np.float32), {0: np.array([20.0], np.float32), 7: np.array([5.0], np.float32)})
    found = context(round=2)
    after = FedGTA().aggregate(server, Updates((0, 1, 2), np.array([1, 1, 1]), each), found)
    mixed = (3 * 21 + 14) / 4
    assert {client: float(model[0]) for client, model in after.models.items()} == {0: mixed, 1: 12, 2: mixed, 7: 5}
    assert after.mean.tolist() == pytest.approx([(21 + 12 + 14) / 3])
    assert found.report.round_columns == {"averaged_clients": pytest.approx(5 / 3)}
    alone = FedGTA(threshold=0.999).weights(np.array(moments), np.array([0.0, 0.0, 0.0]))
    assert alone.tolist() == np.eye(3).tolist()  # also where a client is not sure of anything


@long
@pytest.mark.parametrize("method", ["fedgta", "fedgcn", "fedsageplus", "fedtad", "fedpub"])
def test_runs_agree_with_plain_code(method: str) -> None:
    [case] = [case for _, case in subgraphs.cases() if case.method == method]
    assert compared(case).unchanged < 1e-6


@pytest.mark.parametrize("method", ["fedgta", "fedpub"])
def test_a_run_charges_what_it_sends(method: str, tmp_path: Path) -> None:
    base = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 3, "model.name": "gcn"}
    base |= {"method.name": method, "schedule.rounds": 3, "model.hidden": 8, "training.learning_rate": 0.05}
    result = run(small_run(tmp_path / "whole", base))
    shared = 2 * 8 + 8 + 8 * 2 + 2
    extra = 4 * (1 + 2 * 6 * 2) if method == "fedgta" else 4 * 8
    assert result.rounds["bytes_up"].tolist() == [3 * (4 * shared + extra)] * 3
    assert result.rounds["bytes_down"].tolist() == [3 * 4 * shared] * 3
    virtual = run(small_run(tmp_path / "timed", base, devices__preset="uniform", schedule__rounds=1))
    assert virtual.rounds["bytes_up"].iloc[0] == result.rounds["bytes_up"].iloc[0]


def test_data_without_a_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"method fedgta learns classes of nodes .* kind array\. Take --workload"):
        run(small_run(tmp_path / "run", LOGISTIC, method__name="fedgta", workload__name="digits"))
