"""FedTAD: reliability and the parts of its losses by hand; whole runs are beside plain code in test_fedgta.py."""

from __future__ import annotations

import math
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
import torch

from raysim import seeds
from raysim.errors import RaysimError
from raysim.method import SharedTensor
from raysim.methods import _node_generator as parts
from raysim.methods.fedtad import FedTAD, Server, reliability
from raysim.running.simulation import run
from raysim.workloads.graphs.node_batch import Subgraph
from tests.made_subgraphs import rings
from tests.raysim.methods.by_hand import context
from tests.small_runs import small_run

PATH = Subgraph(torch.tensor([[1.0], [1.0], [0.0]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
"""0 − 1 − 2 with features 1, 1 and 0."""


def test_reliability_is_the_likeness_of_neighbors_and_returns() -> None:
    """Walks of 2: T² returns with ½ to the ends and 1 to the middle, so φ is (1, 0, ½), (1, 0, 1) and (0, 0, ½)."""
    ends = (1 + 0.5) / (math.sqrt(1.25) * math.sqrt(2))  # cos(φ_0, φ_1)
    other = 0.5 / (0.5 * math.sqrt(2))  # cos(φ_1, φ_2)
    found = reliability(PATH, torch.tensor([0, 1]), torch.tensor([0, 2]), 3, 2)
    assert found.tolist() == pytest.approx([(1 + ends) / 2, 0.0, (1 + ends + other) / 3])


def test_parts_of_the_losses() -> None:
    labels = parts.balanced(5, 2)
    assert labels.tolist() == [0, 0, 1, 1, 1]
    weights = parts.class_weights(torch.tensor([[0.5, 0.3], [0.5, 0.6]]), labels)
    assert weights[0].tolist() == pytest.approx([0.25, 0.25, 0.1, 0.1, 0.1])
    one, others = torch.zeros(1, 5, 2), torch.ones(2, 5, 2)
    assert float(parts.disagreement(one, others, weights)) == pytest.approx(0.5 + 0.3 + 0.5 + 0.6)
    assert float(parts.semantics(others, labels, weights)) == pytest.approx(1.9 * math.log(2))
    noise, features = torch.tensor([[0.0], [2.0]]), torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    assert float(parts.alikeness(noise, features)) == pytest.approx(math.exp(-(2 * 4 * 1.5) / 4))
    near = parts.spreading(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), 2)  # 0 − 1 − 2, each with a loop
    assert near[0].tolist() == pytest.approx([1 / 2, 1 / math.sqrt(6), 0.0])
    assert near.diagonal().tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 2])


SIZES = (3, 2, 2)
"""Hidden width, features and classes of small GCNs: 3 + 6 + 6 + 2 numbers each."""


def distillation() -> parts.Distillation:
    """Two teachers."""
    teachers = parts.Gcns.of(torch.randn(2, 17, generator=torch.Generator().manual_seed(0)), *SIZES)
    labels = parts.balanced(8, 2)
    weights = parts.class_weights(torch.tensor([[0.25, 0.5], [0.75, 0.5]]), labels)
    return parts.Distillation(teachers, weights, labels, SIZES, 2)


def test_networks_and_losses_are_those_of_the_parts() -> None:
    made, draws = distillation(), torch.Generator().manual_seed(1)
    values, noise = parts.first_values(*SIZES[1:], draws), torch.randn(8, parts.NOISE, generator=draws)
    model = torch.randn(17, generator=draws)
    x, spread = made.graph(values, noise)
    bias, first, second, last = model.split([3, 6, 6, 2])
    hidden = (spread @ x @ first.view(3, 2).T + bias).relu()
    student = parts.Gcns.of(model[None], *SIZES).logits(spread, x)
    torch.testing.assert_close(student[0], spread @ hidden @ second.view(2, 3).T + last)
    known = made.teachers.logits(spread, x)
    wanted = 0.5 * parts.semantics(known, made.labels, made.weights) + 0.25 * 2 * parts.alikeness(noise, x)
    wanted = wanted - parts.disagreement(student, known, made.weights)
    torch.testing.assert_close(made.generator_loss(values, model, noise, 0.5, 0.25), wanted)
    raised = values.clone()
    raised[-2:] += 5  # the bias of its last layer, which is linear
    torch.testing.assert_close(parts.generated(raised, noise, made.labels, *SIZES[1:]), x + 5)


def test_two_rounds_of_distillation_are_steps_of_adam() -> None:
    """Those of torch, whose moments go on from round to round; noise of round 2 is that round's."""
    made, method = distillation(), FedTAD(epochs=2, distillations=2, nodes=8, neighbors=2)
    trained = torch.cat([part.flatten(1) for part in astuple(made.teachers)], 1).numpy()
    reliable = np.array([[0.25, 0.5], [0.75, 0.5]], np.float32)
    server = Server(np.linspace(-1, 1, 17, dtype=np.float32), np.zeros(0, np.float32), {})
    draws = seeds.torch_generator(0, "fedtad generator", 0)
    generator, model = parts.first_values(*SIZES[1:], draws), torch.from_numpy(server.parameters.copy())
    steps = [torch.optim.Adam([values.requires_grad_()], 1e-3, weight_decay=5e-4) for values in (generator, model)]
    for number in (1, 2):
        found = context(17, round=number, tensors=[SharedTensor(shape) for shape in ((3,), (3, 2), (2, 3), (2,))])
        server = method.distilled(server, trained, reliable, found)
        for _ in range(2):
            noise = torch.randn(8, parts.NOISE, generator=draws)
            steps[0].zero_grad()
            made.generator_loss(generator, model.detach(), noise, 1.0, 1.0).backward()
            steps[0].step()
            x, spread = made.graph(generator.detach(), noise)
            for _ in range(2):
                steps[1].zero_grad()
                made.model_loss(model, (x, spread), made.teachers.logits(spread, x)).backward()
                steps[1].step()
        assert server.parameters == pytest.approx(model.detach().numpy(), abs=1e-5)
        assert server.generator == pytest.approx(generator.detach().numpy(), abs=1e-5)
        draws = seeds.torch_generator(0, "fedtad generator", 2)


def test_without_distillation_it_is_fedavg_and_another_network_is_refused(tmp_path: Path) -> None:
    base = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 3, "model.name": "gcn"}
    base |= {"model.hidden": 4, "schedule.rounds": 2, "method.name": "fedtad", "method.nodes": 8}
    plain = run(small_run(tmp_path / "none", base, method__epochs=0, method__nodes=None))
    average = run(small_run(tmp_path / "fedavg", base, method__name="fedavg", method__nodes=None))
    assert plain.rounds["loss"].tolist() == pytest.approx(average.rounds["loss"].tolist(), rel=1e-6)
    distilled = run(small_run(tmp_path / "distilled", base))
    assert distilled.rounds["disagreement"].gt(0).all()
    assert distilled.rounds["loss"].iloc[-1] != pytest.approx(average.rounds["loss"].iloc[-1], rel=1e-5)
    assert (distilled.rounds["bytes_up"] - average.rounds["bytes_up"]).tolist() == [3 * 4 * 2] * 2
    for options in ({"model__layers": 3}, {"model__last": "linear"}, {"model__name": "sgc", "model__hidden": None}):
        with pytest.raises(RaysimError, match="method fedtad distills into a GCN of two layers; set --model gcn"):
            run(small_run(tmp_path / "other", base, **options))
