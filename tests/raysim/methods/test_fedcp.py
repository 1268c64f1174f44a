"""FedCP: the split of features, values and gradients against formulas written out, and what travels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from raysim.errors import ConfigError
from raysim.flat_model import FlatModel
from raysim.method import Message
from raysim.methods._conditional_policy import ConditionalClassifier, Policy, discrepancy
from raysim.methods.fedcp import FedCP
from raysim.training.frozen_features import frozen_features
from raysim.workloads.federated_data import Batch
from raysim.workloads.models.classifier import Classifier
from tests.state_equality import equal

NEW = np.zeros(0, np.float32)


def flat(method: FedCP, body: nn.Module | None = None, classes: int = 2) -> FlatModel:
    torch.manual_seed(3)
    module = method.extend(Classifier(body or nn.Linear(3, 4), nn.Linear(4, classes)))
    return FlatModel(module, method.shared_names(module))


def parts(model: FlatModel) -> ConditionalClassifier:
    assert isinstance(model.module, ConditionalClassifier)
    return model.module


def batch() -> Batch:
    return Batch(torch.randn(6, 3, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 1, 0, 1, 0]))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 6), st.booleans(), st.booleans())
def test_shares_add_up_to_one(seed: int, features: int, noise: bool, training: bool) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        policy = Policy(features, noise).train(training)
        r, s = policy(10 * torch.randn(5, features))
        assert r.shape == s.shape == (5, features)
        torch.testing.assert_close(r + s, torch.ones_like(r))
        assert (r >= 0).all() and (s >= 0).all()


def test_noise_is_drawn_in_training_only() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        plain, noisy = Policy(3, noise=False), Policy(3, noise=True)
        noisy.load_state_dict(plain.state_dict())
        x = torch.randn(4, 3)
        assert not torch.equal(noisy(x)[0], noisy(x)[0]) and torch.equal(plain(x)[0], plain(x)[0])
        assert torch.equal(noisy.eval()(x)[0], plain(x)[0])


def test_prediction_and_gradients_written_out() -> None:
    method = FedCP(discrepancy=5.0)
    model = flat(method)
    module, data = parts(model), batch()
    with torch.no_grad():
        module.global_head.weight.add_(0.3)
    loss = method.loss(model)
    with torch.no_grad():  # the body has moved since it was received
        received = module.body(data.x)
        module.body.get_parameter("weight").add_(0.2)
    model.gradient.zero_()
    value = loss(module, data)
    value.backward()

    leaves = {name: tensor.detach().clone().requires_grad_() for name, tensor in module.named_parameters()}
    h = data.x @ leaves["body.weight"].T + leaves["body.bias"]
    v = module.head.weight.detach().sum(dim=0)
    pairs = (h * v / v.norm()) @ leaves["policy.layers.0.weight"].T + leaves["policy.layers.0.bias"]
    centered = pairs - pairs.mean(dim=1, keepdim=True)
    scaled = centered / (centered.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    a = F.relu(scaled * leaves["policy.layers.1.weight"] + leaves["policy.layers.1.bias"])
    r = a[:, :4].exp() / (a[:, :4].exp() + a[:, 4:].exp())
    logits = (r * h) @ leaves["global_head.weight"].T + leaves["global_head.bias"]
    logits = logits + ((1 - r) * h) @ leaves["head.weight"].T + leaves["head.bias"]
    torch.testing.assert_close(module(data.x), logits)

    def k(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        squares = (x[:, None] - y[None]).square().sum(dim=2)
        return torch.stack([torch.exp(-squares / (2 * width)) for width in (10, 15, 20, 50)]).sum(dim=0)

    term = (k(h, h) + k(received, received) - 2 * k(h, received)).mean()
    expected = F.cross_entropy(logits, data.y) + 5.0 * term
    expected.backward()
    assert term.item() > 1e-4 and value.item() == pytest.approx(expected.item(), rel=1e-5)
    for entry in model.entries:
        if entry.parameter:
            found, wanted = model.gradient[entry.start : entry.stop].view(entry.shape), leaves[entry.name].grad
            assert wanted is not None
            torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5)


def test_the_term_is_that_of_float32_under_autocast() -> None:
    """In bfloat16 it was below 0 for features of such a size, and its gradients without bounds."""
    first = torch.randn(50, 512, generator=torch.Generator().manual_seed(0)) * 4.6
    second = first + 0.05 * torch.randn(50, 512, generator=torch.Generator().manual_seed(1))
    coarse = first.bfloat16(), second.bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        found = discrepancy(*coarse)
    x, y = coarse[0].double(), coarse[1].double()
    kernels = [
        (torch.cdist(a, b)[..., None].square() / torch.tensor([-20.0, -30.0, -40.0, -100.0])).exp().sum(dim=2)
        for a, b in ((x, x), (y, y), (x, y))
    ]
    expected = float((kernels[0] + kernels[1] - 2 * kernels[2]).mean())
    assert found.dtype == torch.float32 and expected > 0.001
    assert float(found) == pytest.approx(expected, rel=0.02)


def test_without_the_term_the_body_is_not_run_twice() -> None:
    class Counting(nn.Linear):
        runs = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.runs += 1
            return super().forward(x)

    body, data = Counting(3, 4), batch()
    model = flat(FedCP(discrepancy=0.0), body)
    value = FedCP(discrepancy=0.0).loss(model)(model.module, data)
    assert body.runs == 1 and value.item() == pytest.approx(F.cross_entropy(model.module(data.x), data.y).item())
    # Nothing has moved: the term is there, and zero.
    assert FedCP(discrepancy=5.0).loss(model)(model.module, data).item() == pytest.approx(value.item(), abs=1e-5)
    assert body.runs == 4


def test_frozen_body_keeps_values_and_statistics() -> None:
    torch.manual_seed(0)
    first = nn.Linear(3, 4)
    body, x = nn.Sequential(first, nn.BatchNorm1d(4)), batch().x
    received = frozen_features(body, evaluation=False)
    before = {name: value.clone() for name, value in body.state_dict().items()}
    expected = nn.functional.batch_norm(first(x), None, None, training=True)
    with torch.no_grad():
        torch.testing.assert_close(received(x), expected)
    assert all(torch.equal(value, before[name]) for name, value in body.state_dict().items())
    with torch.no_grad():
        first.weight.mul_(2)
    assert torch.allclose(received(x), expected) and not received(x).requires_grad


def test_what_travels_and_what_stays(make_local_training: Callable[..., Any]) -> None:
    local = make_local_training(method__name="fedcp")
    method, model = local.method, local.worker.model(0)
    stays = {entry.name for entry in model.entries if not entry.shared}
    assert stays == {"head.weight", "head.bias", "context"}
    server = method.init_server(model)
    update, kept = local.train(0, method.message(server, 0), NEW)
    assert kept.size == 64 * 10 + 10 + 64 and not update.extra
    # The uploaded global head is half the received one, half the client's own.
    module = parts(local.worker.model(0))
    initial = module.global_head.weight.clone()
    method.deploy(local.worker.model(0), Message(server + update.delta), kept)
    torch.testing.assert_close(module.global_head.weight, (initial + module.head.weight) / 2)
    assert not torch.equal(module.head.weight, initial)
    again, same = local.train(0, method.message(server, 0), NEW)
    assert equal((update, kept), (again, same))


def test_weight_decay_leaves_the_global_head_alone(make_local_training: Callable[..., Any]) -> None:
    local = make_local_training(method__name="fedcp", training__weight_decay=0.5)
    server = local.method.init_server(local.worker.model(0))
    update, kept = local.train(0, local.method.message(server, 0), NEW)
    model = local.worker.model(0)
    initial = parts(model).global_head.weight.clone()
    local.method.deploy(model, Message(server + update.delta), kept)
    torch.testing.assert_close(2 * parts(model).global_head.weight - parts(model).head.weight, initial)


def test_new_clients_take_the_global_head() -> None:
    method = FedCP()
    model = flat(method)
    module = parts(model)
    sent = method.init_server(model) + 1
    method.deploy(model, Message(sent), method.init_client(model))
    assert torch.equal(module.head.weight, module.global_head.weight)
    v = module.head.weight.sum(dim=0)
    torch.testing.assert_close(module.context, v / v.norm())
    # Later the client has its own, and the vector follows it.
    with torch.no_grad():
        module.head.weight.copy_(torch.arange(8.0).view(2, 4))
    kept = model.take_private()
    model.reset()
    method.deploy(model, Message(sent), kept)
    assert module.head.weight.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    torch.testing.assert_close(module.context, F.normalize(torch.tensor([4.0, 6, 8, 10]), dim=0))


def test_heads_that_do_not_agree_stay() -> None:
    # As the engine has it where clients differ in classes: the heads of each are its own, body and policy travel.
    method = FedCP()
    module = method.extend(Classifier(nn.Linear(3, 4), nn.Linear(4, 5)))
    shared = [name for name in method.shared_names(module) if not name.startswith("global_head.")]
    model = FlatModel(module, shared)
    method.deploy(model, Message(method.init_server(model)), NEW)
    kept = model.take_private()
    assert kept.size == 2 * (4 * 5 + 5) + 4
    method.deploy(model, Message(model.take_shared()), kept)
    assert np.array_equal(model.take_private(), kept)


def test_a_model_without_a_linear_head_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a body and a linear head .* not Linear"):
        FedCP().extend(nn.Linear(3, 2))
