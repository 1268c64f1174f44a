"""FED-PUB: masks, the random graph and the mixture by hand; whole runs are beside plain code in test_fedgta.py."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from raysim import seeds
from raysim.flat_model import FlatModel
from raysim.method import Message
from raysim.methods.fedpub import COMMUNITY, FedPUB, Kept, masked, proxy_graph
from raysim.workloads.federated_data import Batch
from raysim.workloads.graphs.node_batch import NodeSamples, Subgraph
from raysim.workloads.models.classifier import Classifier
from tests.raysim.methods.by_hand import InOrder, one_sample


def test_masks_multiply_weights_and_small_ones_are_cut_at_test() -> None:
    module: Any = masked(Classifier(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)), prune=0.1)
    assert [name for name, _ in module.named_parameters() if name.startswith("masks.")] == [
        "masks.body-weight",
        "masks.head-weight",
    ]
    with torch.no_grad():
        module.body.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        module.body.bias.zero_()
        module.masks["body-weight"].copy_(torch.tensor([[1.0, 0.05], [-0.5, -0.05]]))
    x = torch.tensor([[1.0, 10.0]])
    assert module.train().features(x).tolist() == [pytest.approx([1 + 1.0, -1.5 - 2.0])]
    assert module.eval().features(x).tolist() == [pytest.approx([1.0, -1.5])]
    assert FedPUB().shared_names(module) == {"body.weight", "body.bias", "head.weight", "head.bias"}


def test_the_random_graph_is_that_of_the_seed() -> None:
    proxy = proxy_graph(3, 2, 0.1, 0, "cpu")
    first, second = proxy.edge_index
    assert proxy.num_nodes == 2 * COMMUNITY and torch.equal(first // COMMUNITY, second // COMMUNITY)
    assert 700 < proxy.edge_index.shape[1] / 2 < 1300  # 2 · 4950 pairs at 0.1
    assert abs(float(proxy.x.mean())) < 0.2 and not torch.equal(proxy.x, proxy_graph(3, 2, 0.1, 1, "cpu").x)


def test_the_random_graph_is_that_of_the_runs_training_streams() -> None:
    """In one process, too, in which another run had one of the same seed."""
    graph = Subgraph(torch.rand(2, 3), torch.tensor([[0, 1], [1, 0]]))
    data: Any = SimpleNamespace(train=NodeSamples(graph, torch.tensor([0]), torch.tensor([0])))
    module = SimpleNamespace(eval=lambda: None, features=lambda batch: batch.x)
    model: Any = SimpleNamespace(module=module, device="cpu")
    found = [FedPUB().embedding(model, data, seed) for seed in (0, seeds.Seed(0, {"training": 1}), 1)]
    assert found[0].tolist() != found[1].tolist() == found[2].tolist()


class WithoutGraph(FedPUB):
    """Its data are no graph."""

    def embedding(self, model: Any, data: Any, seed: int) -> Any:
        return np.zeros(1, np.float32)


@pytest.mark.parametrize("again", [False, True])
def test_penalties_pull_at_weights_and_masks(again: bool) -> None:
    """Inputs of 0 leave decay and penalties alone: two steps at the rate ½; only a client's second task pulls by λ₂."""
    method = WithoutGraph(sparsity=0.2, proximal=0.4, prune=0.5)
    module = masked(Classifier(torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)), method.prune)
    model = FlatModel(module, method.shared_names(module))
    task, _ = one_sample(epochs=2, weight_decay=0.1)
    data: Any = SimpleNamespace(train=InOrder(Batch(torch.zeros(1, 1), torch.zeros(1, dtype=torch.int64))))
    message = Message(np.array([1.0, 2.0], np.float32))
    masks: Any = np.array([0.5, -1.0], np.float32)
    state = Kept(masks, np.ones(2, np.float32) if again else np.zeros(0, np.float32))
    update, kept = method.train(model, data, message, state, replace(task, classes=1))
    one = 0.95 * message.parameters
    two = 0.95 * one - 0.5 * 2 * 0.4 * (one - message.parameters) * again
    assert kept.trained == pytest.approx(two) and update.delta == pytest.approx(two - message.parameters)
    for _ in range(2):
        masks = 0.95 * masks - 0.5 * 0.2 * np.sign(masks)
    assert kept.masks == pytest.approx(masks) and update.metrics["pruned"] == 0.5  # 0.256 and −0.708
    method.deploy(model, message, kept)
    assert model.take_shared().tolist() == kept.trained.tolist()
    method.deploy(model, message, replace(kept, trained=np.zeros(0, np.float32)))
    assert model.take_shared().tolist() == [1, 2]


def test_weights_by_similarity() -> None:
    """Cosines 1, 0 and 1 of client 0, so that α is e^τ, 1 and e^τ over their sum."""
    weights = FedPUB(scale=2.0).weights(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]))
    total = 2 * math.exp(2) + 1
    assert weights[0] == pytest.approx([math.exp(2) / total, 1 / total, math.exp(2) / total])
    assert weights[1, 1] == pytest.approx(math.exp(2) / (math.exp(2) + 2))
