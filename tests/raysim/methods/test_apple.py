"""APPLE: gradients against autograd, a client task by hand, p's start and pull, and what leaves a client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call

from raysim.flat_model import FlatModel
from raysim.method import Message, Updates, Vector
from raysim.methods.apple import Apple, ClientState, Combination, Server, cosine_decay, joined
from raysim.methods.fedavg import FedAvg
from raysim.workloads.arrays.array_samples import ArraySamples
from raysim.workloads.federated_data import ClientData
from raysim.workloads.models.classifier import Classifier
from tests.raysim.methods.by_hand import context, linear, one_sample, sigmoid, updates
from tests.state_equality import equal


def vector(values: list[float]) -> Vector:
    return np.array(values, np.float32)


def kept(clients: list[int], weights: list[float], own: Any = (), client: int = 1, samples: int = 2) -> ClientState:
    return ClientState(client, samples, np.array(own, np.float32), np.array(clients, np.int64), np.array(weights))


def test_pull_decays_by_a_cosine_over_the_first_rounds() -> None:
    assert [cosine_decay(r, 4) for r in range(6)] == pytest.approx([1, 0.8535534, 0.5, 0.1464466, 0, 0])
    assert cosine_decay(0, 0.0) == 0.0
    server = Server(np.zeros(1, np.float32), {}, {}, 9.0)
    method, given = Apple(mu=0.5, proximal_share=0.4), updates([[0]], [1])
    found = [method.aggregate(server, given, context(round=round, rounds=10)).proximal for round in (1, 2, 3, 4, 5)]
    assert found == pytest.approx([0.5 * value for value in (0.8535534, 0.5, 0.1464466, 0, 0)])


def test_weights_of_cores_met_for_the_first_time() -> None:
    assert joined(np.zeros(0, np.int64), np.zeros(0), np.array([3, 5]), np.array([0.25, 0.75])).tolist() == [0.25, 0.75]
    # Clients 2 and 7 are new, with 0.1 + 0.3 in all: what was learned shrinks to 60 %.
    after = joined(np.array([4, 5]), np.array([1.5, -0.5]), np.array([2, 4, 5, 7]), np.array([0.1, 0.4, 0.2, 0.3]))
    assert after == pytest.approx([0.1, 0.9, -0.3, 0.3])


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=8))
def test_untouched_weights_stay_the_start_weights(clients: list[tuple[int, bool]]) -> None:
    samples, old = np.array([count for count, _ in clients]), np.array([known for _, known in clients])
    everyone = np.arange(len(clients))
    before = Apple().start_weights(samples[old]) if old.any() else np.zeros(0)
    after = joined(everyone[old], before, everyone, Apple().start_weights(samples))
    np.testing.assert_allclose(after, samples / samples.sum(), rtol=1e-12)
    assert Apple(start="uniform").start_weights(samples).tolist() == [1 / len(clients)] * len(clients)


@pytest.mark.parametrize("shared", [("body.weight", "body.bias", "head.weight", "head.bias"), ("body.weight",)])
@pytest.mark.parametrize("core_rate", ["clients", "print"])
def test_gradients_against_autograd(shared: tuple[str, ...], core_rate: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    module = Classifier(nn.Linear(3, 4), nn.Linear(4, 2))
    model = FlatModel(module, shared)
    d, x, y = len(model.shared), torch.randn(5, 3, generator=generator), torch.tensor([0, 1, 1, 0, 1])
    cores = torch.randn(3, d, generator=generator)
    p, start = torch.tensor([0.7, -0.2, 0.4], dtype=torch.float64), torch.tensor([3, 5, 2], dtype=torch.float64) / 10

    # The whole graph: p and the own core → personal model → loss + pull.
    core, weights = cores[1].clone().requires_grad_(), p.clone().requires_grad_()
    others = model.take_private()
    local = torch.tensor(others, requires_grad=True)
    flat = torch.cat([local, weights.float() @ torch.stack([cores[0], core, cores[2]])])
    tensors = {entry.name: flat[entry.start : entry.stop].view(entry.shape) for entry in model.entries}
    pull = 0.3 / 2 * (weights - start).square().sum()
    (nn.functional.cross_entropy(functional_call(module, tensors, (x,)), y) + pull).backward()
    assert core.grad is not None and weights.grad is not None and local.grad is not None

    method = Apple(relation_learning_rate=0.2, core_rate=core_rate)
    extra = {
        "others": np.array([0, 4]),
        "samples": np.array([3, 2]),
        "proximal": 0.3,
        "core 0": cores[0].numpy(),
        "core 4": cores[2].numpy(),
    }
    task, _ = one_sample(epochs=1)
    samples = ArraySamples(x.numpy(), y.numpy(), "cpu")
    data = ClientData(1, "one", samples, samples)
    update, after = method.train(
        model, data, Message(cores[1].numpy(), extra), kept([0, 1, 4], p.tolist(), others), task
    )
    scale = 3 if core_rate == "clients" else 1
    np.testing.assert_allclose(update.delta, -0.5 * scale * core.grad.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after.weights, p.numpy() - 0.2 * weights.grad.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after.own, others - 0.5 * local.grad.numpy(), rtol=1e-4, atol=1e-6)
    assert after.clients.tolist() == [0, 1, 4] and (after.client, after.samples) == (1, 5)
    assert update.metrics["own_weight"] == after.weights[1]
    # Judged by the combination of what it has learned.
    server = Server(cores[1].numpy(), {0: cores[0].numpy(), 1: core.detach().numpy(), 4: cores[2].numpy()}, {}, 0.0)
    server = Server(server.start, server.cores, {0: 3, 1: 5, 4: 2}, 0.0)
    method.deploy(model, method.message(server, 1), after)
    torch.testing.assert_close(model.shared, torch.tensor(after.weights).float() @ cores)
    np.testing.assert_array_equal(model.take_private(), after.own)


def test_a_client_task_of_two_steps_by_hand() -> None:
    # Cores (1, -1) and (-1, 1), p = p0 = (1/2, 1/2), input 1, label 0. Step 1: personal model 0, g = (-1/2, 1/2);
    # own core + 1/2 · 2 · 1/2 · 1/2 = 5/4; p - 0.1 (±1) = (0.6, 0.4). Step 2: personal model
    # ±(0.6 · 5/4 - 0.4) = ±0.35.
    method = Apple(relation_learning_rate=0.1)
    extra = {"others": np.array([4]), "samples": np.array([1]), "proximal": 3.0, "core 4": vector([-1, 1])}
    task, data = one_sample(epochs=2)
    message = Message(vector([1, -1]), extra)
    update, after = method.train(linear(method), data, message, method.init_client(linear(method)), task)
    miss = 1 - sigmoid(0.7)
    own = 1.25 + 0.5 * 2 * 0.6 * miss
    assert update.delta == pytest.approx([own - 1, 1 - own], abs=1e-6)
    expected = [0.6 - 0.1 * (-2.5 * miss + 3 * 0.1), 0.4 - 0.1 * (2 * miss - 3 * 0.1)]
    assert after.weights == pytest.approx(expected, abs=1e-6)
    assert after.clients.tolist() == [1, 4] and update.metrics["steps"] == 2


def test_optimizer_acts_on_the_own_core() -> None:
    # Decay 0.1 of the core (2, 0), not of the personal model: -lr · 0.1 · 2 beside the gradient of the personal model.
    method = Apple(relation_learning_rate=0.0)
    extra = {"others": np.array([4]), "samples": np.array([1]), "proximal": 0.0, "core 4": vector([-2, 0])}
    task, data = one_sample(epochs=1, weight_decay=0.1)
    update, _ = method.train(linear(method), data, Message(vector([2, 0]), extra), kept([1, 4], [0.5, 0.5]), task)
    assert update.delta == pytest.approx([0.25 - 0.1, -0.25], abs=1e-6)


def test_messages_and_aggregation() -> None:
    method = Apple(start="samples")
    server = method.init_server(linear(method))
    first = method.message(server, 3)
    assert first.parameters is server.start and first.extra["others"].size == 0
    server = method.aggregate(server, updates([[4, 0], [0, 8]], [1, 3], [3, 5]), context())
    assert {client: core.tolist() for client, core in server.cores.items()} == {3: [4, 0], 5: [0, 8]}
    assert server.start.tolist() == [1, 6] and server.samples == {3: 1, 5: 3}
    own, other = method.message(server, 3), method.message(server, 5)
    # Each core is one array for all, and nobody gets one twice.
    assert own.parameters is other.extra["core 3"] and own.extra["core 5"] is other.parameters
    assert set(own.extra) == {"others", "samples", "proximal", "core 5"}
    assert method.message(server, 9).parameters is server.start
    # A client that was not sampled keeps its core; a new one starts from the mean.
    later = method.aggregate(server, updates([[1, 1]], [4], [9]), context(round=2))
    assert later.cores[3] is server.cores[3] and later.cores[9].tolist() == [2, 7]
    assert later.start == pytest.approx([1 / 8 * 4 + 1 / 2 * 2, 3 / 8 * 8 + 1 / 2 * 7])
    # A new client is judged by the mean, in its first client task too.
    model = linear(method)
    method.deploy(model, method.message(server, 9), method.init_client(model))
    assert model.take_shared().tolist() == [1, 6]
    found = Combination(method, model, method.message(server, 9), kept([], [], client=9, samples=4))
    assert found.weights.tolist() == [1 / 8, 3 / 8, 1 / 2] and found.own == 2
    found.enter()
    assert model.take_shared().tolist() == [1, 6]


def test_first_round_then_start_weights_are_fedavg(make_local_training: Callable[..., Any]) -> None:
    local = make_local_training(method__name="apple")
    method, average = local.method, FedAvg()
    model = local.worker.model(0)
    server, theta = method.init_server(model), model.take_shared()
    clients = tuple(range(local.worker.federation.clients))
    new = method.init_client(model)
    trained = {client: local.train(client, method.message(server, client), new) for client in clients}
    worker = local.worker
    plain = [
        average.train(worker.model(client), worker.data(client), Message(theta), None, local.task(client))[0]
        for client in clients
    ]
    for client, expected in zip(clients, plain, strict=True):
        assert np.array_equal(trained[client][0].delta, expected.delta)
        assert trained[client][1].weights.tolist() == [1.0]
    samples = np.array([local.worker.federation.samples(client) for client in clients])
    server = method.aggregate(server, Updates(clients, samples, tuple(u for u, _ in trained.values())), context())
    model = local.worker.model(0)
    method.deploy(model, method.message(server, 0), trained[0][1])
    expected_model = average.aggregate(theta, Updates(clients, samples, tuple(plain)), context())
    np.testing.assert_allclose(model.take_shared(), expected_model, atol=1e-6)


def test_only_the_core_leaves_a_client(make_local_training: Callable[..., Any]) -> None:
    local = make_local_training(method__name="apple", model__name="mobilenet", model__width=0.1)
    model = local.worker.model(0)
    assert not any(entry.shared != entry.parameter for entry in model.entries)  # running statistics stay
    message = local.method.message(local.method.init_server(model), 0)
    update, state = local.train(0, message, local.method.init_client(model))
    assert not update.extra and update.delta.size == model.shared_parameter_count
    assert state.own.size == model.buffer.numel() - update.delta.size > 0
    again, same = local.train(0, message, local.method.init_client(model))
    assert equal((update, state), (again, same))


def test_a_core_is_the_one_that_its_client_trained_however_stale() -> None:
    """Client 0 started from the start that all had then, client 1 from its own core; the step weighs changes by 1/2."""
    server = Server(vector([9, 9]), {1: vector([1, 2])}, {1: 2}, 0.0)
    stale = replace(
        updates([[0.5, 0.5], [1, -1]], [3, 2]),
        unweighted=(vector([1, 1]), vector([2, -2])),
        bases=(vector([4, 5]), vector([1, 2])),
    )
    cores = Apple().aggregate(server, stale, context()).cores
    assert (cores[0].tolist(), cores[1].tolist()) == ([5, 6], [3, 0])
