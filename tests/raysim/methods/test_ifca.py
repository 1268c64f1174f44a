"""IFCA against a plain loop over its equations, its initial models, and clients that find each other."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from raysim.config.sections import Training
from raysim.flat_model import FlatModel
from raysim.methods.fedavg import FedAvg
from raysim.methods.ifca import IFCA, Server
from tests.raysim.methods.by_hand import context, updates
from tests.raysim.methods.softmax_by_hand import DATA, gradient_of, loss_of, play, start

COHORTS = ((0, 2), (1, 2), (0, 1, 2))
EPOCHS, RATE = 2, 0.25
TRAINING = Training(learning_rate=RATE, batch_size=1)


def test_three_rounds_by_a_plain_loop() -> None:
    method = IFCA(clusters=3)
    models = [values.astype(np.float64) for values in method.init_server(start()).models]
    chosen: list[int] = [0, 0, 0]
    for cohort in COHORTS:
        trained = {}
        for i in cohort:
            chosen[i] = min(range(3), key=lambda j: loss_of(models[j], i))
            w = models[chosen[i]].copy()
            for sample in DATA[i] * EPOCHS:
                w = w - RATE * gradient_of(w, *sample)
            trained[i] = w
        for j in range(3):
            members = [i for i in cohort if chosen[i] == j]
            if members:
                total = sum(len(DATA[i]) for i in members)
                models[j] = np.sum([len(DATA[i]) * trained[i] for i in members], axis=0) / total
    server, states = play(method, COHORTS, EPOCHS, TRAINING)
    assert states == chosen and len(set(chosen)) > 1
    np.testing.assert_allclose(server.models, models, rtol=1e-5, atol=1e-6)


def test_clients_with_opposite_labels_find_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [[1.0, 2.0], [-1.0, 0.5], [0.5, -1.5]]
    for client, labels in enumerate(((0, 1, 1), (1, 0, 0), (0, 1, 1))):
        monkeypatch.setitem(DATA, client, list(zip(points, labels, strict=True)))
    server, states = play(IFCA(), ((0, 1, 2),) * 6, EPOCHS, TRAINING)
    assert states[0] == states[2] != states[1]
    assert max(loss_of(server.models[own], client) for client, own in enumerate(states)) < 0.3
    alone, _ = play(FedAvg(), ((0, 1, 2),) * 6, EPOCHS, TRAINING)
    assert loss_of(alone, 1) > 0.7


def test_a_server_step_by_hand() -> None:
    # Model 0: samples 1 and 3, (1·4 + 3·(-4))/4 = -2 and (1·(-8) + 3·0)/4 = -2; model 1 stays; model 2: client 2 alone.
    models = tuple(np.full(2, value, np.float32) for value in (10, 20, 30))
    given, told = updates([[4, -8], [-4, 0], [5, -6]], [1, 3, 9], cluster=[0.0, 0.0, 2.0]), context()
    after = IFCA(clusters=3).aggregate(Server(models), given, told)
    assert [values.tolist() for values in after.models] == [[8, 8], [20, 20], [35, 24]]
    assert after.models[1] is models[1] and told.report.round_columns["clusters"] == 2.0


def test_the_initial_models_are_shuffled_within_their_tensors() -> None:
    layers = (torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))
    module = torch.nn.Sequential(*layers, torch.nn.Linear(2, 2).requires_grad_(False))
    shared = {name for name in FedAvg().shared_names(module) if not name.startswith("0.")}
    model = FlatModel(module, shared)
    dict(module.named_buffers())["1.running_mean"].copy_(torch.tensor([1.0, 2.0, 3.0]))
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    first, *others = IFCA(clusters=3).init_server(model).models
    assert np.array_equal(first, model.take_shared()) and not np.array_equal(others[0], others[1])
    for values in others:
        model.load_shared(values)
        assert not np.array_equal(values, first)
        for name, tensor in module.state_dict().items():
            if name.startswith("2."):
                assert torch.equal(tensor.flatten().sort().values, before[name].flatten().sort().values)
            else:  # what stays, BatchNorm's ones and zeros, and its statistics, what is frozen
                assert torch.equal(tensor, before[name])


def test_a_client_is_judged_by_the_model_that_it_chose() -> None:
    server = Server((np.array([1, 2, 3, 4], np.float32), np.array([5, 6, 7, 8], np.float32)))
    model, method = start(), IFCA()
    method.deploy(model, method.message(server, 0), 1)
    assert model.take_shared().tolist() == [5, 6, 7, 8]
    method.deploy(model, method.message(server, 0), method.init_client(model))
    assert model.take_shared().tolist() == [1, 2, 3, 4]


def test_a_broken_model_is_chosen_by_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter([1.0, float("nan"), 0.5])
    monkeypatch.setattr("raysim.workloads.metrics.evaluate", lambda *_, **__: SimpleNamespace(loss=next(losses)))
    _, states = play(IFCA(clusters=3), ((0,),), EPOCHS, TRAINING)
    assert states[0] == 2
