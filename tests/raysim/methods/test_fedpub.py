"""FED-PUB: masks, the random graph and the mixture by hand; whole runs are beside plain code in test_fedgta.py."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from raysim import seeds
from raysim.methods.fedpub import COMMUNITY, FedPUB, masked, proxy_graph
from raysim.workloads.graphs.node_batch import NodeSamples, Subgraph
from raysim.workloads.models.classifier import Classifier


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


def test_weights_by_similarity() -> None:
    """Cosines 1, 0 and 1 of client 0, so that α is e^τ, 1 and e^τ over their sum."""
    weights = FedPUB(scale=2.0).weights(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]))
    total = 2 * math.exp(2) + 1
    assert weights[0] == pytest.approx([math.exp(2) / total, 1 / total, math.exp(2) / total])
    assert weights[1, 1] == pytest.approx(math.exp(2) / (math.exp(2) + 2))
