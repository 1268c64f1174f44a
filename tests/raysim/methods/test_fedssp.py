"""FedSSP: what is shared, the running mean and the loss by hand, and the preference in training and evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from raysim.client_side.model_parts import check_parts
from raysim.client_side.worker import ClientState
from raysim.config.run_config import build, default_config
from raysim.errors import ConfigError
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Message, Update, Updates
from raysim.methods.fedssp import FedSSP, Regularizer, Server, preference_step
from raysim.running.simulation import run
from raysim.storage import pytree
from raysim.workloads.arrays.array_samples import ArraySamples
from raysim.workloads.federated_data import Batch, ClientData
from raysim.workloads.models.classifier import Classifier, WithPreference
from tests.raysim.methods.by_hand import context

GRAPHS: dict[str, Any] = {
    "method__name": "fedssp",
    "workload__name": "toy-graphs",
    "workload__clients": 3,
    "workload__graphs_per_client": 20,
    "model__name": "spectral",
    "model__hidden": 8,
    "model__heads": 2,
    "model__layers": 1,
    "training__steps_per_epoch": 0,
    "training__batch_size": 8,
}


def linear_model() -> FlatModel:
    """body and head are the identity on two features, q = (0.5, −0.5)."""
    body, head = torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False)
    model = WithPreference(Classifier(body, head))
    with torch.no_grad():
        body.weight.copy_(torch.eye(2))
        head.weight.copy_(torch.eye(2))
        model.preference.copy_(torch.tensor([0.5, -0.5]))
    return FlatModel(model, ())


def regularizer(start: Any, target: tuple[float, ...] = ()) -> Regularizer:
    return Regularizer(FedSSP(momentum=0.5, start=start, regularization=3.0), np.array(target, np.float32), "cpu")


def test_the_running_mean_over_two_batches() -> None:
    """β = 0.5 from 0: ½·(2, 4) = (1, 2), then ½·(1, 2) + ½·(6, 0) = (3.5, 1). Gradients enter by the batch alone."""
    mean = regularizer("zero")
    first = torch.tensor([[1.0, 3.0], [3.0, 5.0]], requires_grad=True)
    assert mean.next_mean(first).tolist() == [1.0, 2.0]
    second = torch.tensor([[6.0, 0.0]], requires_grad=True)
    found = mean.next_mean(second)
    found.sum().backward()
    assert found.tolist() == [3.5, 1.0] and mean.mean is not None and mean.mean.tolist() == [3.5, 1.0]
    assert first.grad is None and second.grad is not None and second.grad.tolist() == [[0.5, 0.5]]
    mean.reset()
    assert mean.next_mean(second.detach()).tolist() == [3.0, 0.0]


@pytest.mark.parametrize(("start", "expected"), [("first", [4.0, 2.0]), ("zero", [3.5, 1.0]), ("every", [3.0, 0.0])])
def test_starts_of_the_running_mean(start: Any, expected: list[float]) -> None:
    """Batch means (2, 4), then (6, 0), β = 0.5."""
    mean = regularizer(start)
    mean.next_mean(torch.tensor([[2.0, 4.0]]))
    assert mean.next_mean(torch.tensor([[6.0, 0.0]])).tolist() == expected


def test_the_loss_over_two_batches_by_hand() -> None:
    """Batch (2, 4), then (6, 0), μ̄ = (1, 1), τ = 3: terms 3·½·mean(0, 1) = 0.75 and 3·½·mean(6.25, 0) = 4.6875."""
    model, found = linear_model(), regularizer("zero", (1.0, 1.0))
    for inputs, label, term in (([[2.0, 4.0]], 1, 0.75), ([[6.0, 0.0]], 0, 4.6875)):
        x, y = torch.tensor(inputs), torch.tensor([label])
        entropy = cross_entropy(x + torch.tensor([0.5, -0.5]), y)
        value = float(found.loss(model.module, Batch(x, y)).detach())
        np.testing.assert_allclose(value, float(entropy) + term, rtol=1e-6)
    assert [float(term) for term in found.terms] == [0.75, 4.6875]


def test_without_a_global_mean_the_loss_is_cross_entropy_with_the_preference() -> None:
    model = linear_model()
    x, y = torch.tensor([[2.0, 4.0]]), torch.tensor([1])
    assert torch.equal(regularizer("zero").loss(model.module, Batch(x, y)), cross_entropy(model.module(x), y))


def test_the_preference_follows_plain_sgd() -> None:
    model = linear_model()
    step = preference_step(model, 0.1)
    x, y = torch.tensor([[2.0, 4.0]]), torch.tensor([0])
    model.gradient.zero_()
    cross_entropy(model.module(x), y).backward()
    probability = torch.softmax(torch.tensor([2.5, 3.5]), 0)
    step(model)
    expected = torch.tensor([0.5, -0.5]) - 0.1 * (probability - torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(model.module.preference.data, expected)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_the_preference_follows_plain_sgd_through_a_client_task(optimizer: str) -> None:
    """Eight steps of all samples, where nothing else moves: each step is along its own batch's gradient alone."""
    model = linear_model()
    x, y = torch.randn(16, 2, generator=torch.Generator().manual_seed(0)), torch.arange(16) % 2
    samples = ArraySamples(x.numpy(), y.numpy(), "cpu")
    settings = build([{"method.name": "fedssp", "training.optimizer": optimizer, "training.batch_size": 16}]).training
    task = ClientTask(0, 1, 0, 8, 0.0, settings, 2)
    none = np.zeros(0, np.float32)
    method = FedSSP(preference_rate=0.1)
    method.train(model, ClientData(0, "a", samples, samples), Message(none, {"mean": none}), model.take_private(), task)
    expected = torch.tensor([0.5, -0.5])
    for _ in range(8):
        probability = torch.softmax(x + expected, 1)
        expected = expected - 0.1 * (probability - torch.nn.functional.one_hot(y, 2)).mean(0)
    torch.testing.assert_close(model.module.preference.data, expected)


def test_averaging_is_uniform_whatever_the_samples() -> None:
    each = tuple(
        Update(np.full(2, value, np.float32), {"regularizer": value}, {"mean": np.full(2, 10 * value, np.float32)})
        for value in (1, 2, 6)
    )
    updates = Updates((0, 1, 2), np.array([100, 1, 1]), each)
    found = context()
    server = FedSSP().aggregate(Server(np.ones(2, np.float32), np.zeros(0, np.float32)), updates, found)
    np.testing.assert_allclose(server.parameters, [4.0, 4.0])
    np.testing.assert_allclose(server.mean, [30.0, 30.0])
    # μ_k are 10, 20 and 60 in both entries, their mean 30: √(4100 / 3), and √((20² + 10² + 30²) / 3).
    assert found.report.round_columns == pytest.approx(
        {"feature_scale": (4100 / 3) ** 0.5, "feature_spread": (1400 / 3) ** 0.5, "regularizer": 3.0}
    )


def test_the_mean_by_samples_by_hand() -> None:
    # 1, 3 and 4 samples: 1 + (1·1 + 3·(−2) + 4·6) / 8 = 3.375. μ̄ stays a mean of clients: (10 − 20 + 60) / 3.
    each = tuple(
        Update(np.array([value], np.float32), {"regularizer": 0.0}, {"mean": np.array([10 * value], np.float32)})
        for value in (1, -2, 6)
    )
    method, updates = FedSSP(client_weights="samples"), Updates((0, 1, 2), np.array([1, 3, 4]), each)
    server = method.aggregate(Server(np.ones(1, np.float32), np.zeros(0, np.float32)), updates, context())
    assert server.parameters.tolist() == [3.375]
    np.testing.assert_allclose(server.mean, [50 / 3], rtol=1e-6)


@pytest.mark.parametrize(("consensus", "expected"), [("renewed", [4.0, 8.0]), ("static", [4.0, 4.0])])
def test_a_static_consensus_is_that_of_the_first_round(consensus: Any, expected: list[float]) -> None:
    # Clients' means are 2 and 6, then 5 and 11.
    method, server, found = FedSSP(consensus=consensus), Server(np.zeros(1, np.float32), np.zeros(0, np.float32)), []
    for means in ((2.0, 6.0), (5.0, 11.0)):
        each = tuple(
            Update(np.ones(1, np.float32), {"regularizer": 0.0}, {"mean": np.array([mean], np.float32)})
            for mean in means
        )
        seen = context()
        server = method.aggregate(server, Updates((0, 1), np.array([3, 1]), each), seen)
        found.append(float(server.mean[0]))
    assert found == expected
    assert server.parameters.tolist() == [2.0]  # sharing goes on
    # How far the clients are from the mean that they are pulled to: 5 and 11 from 8, or from 4.
    spread = {"renewed": 3.0, "static": ((1 + 49) / 2) ** 0.5}[consensus]
    assert seen.report.round_columns["feature_spread"] == pytest.approx(spread)


def test_weights_by_samples_from_the_command_line(make_config: Callable[..., Any]) -> None:
    usual, by_samples = (
        run(make_config(weights, **GRAPHS, method__client_weights=weights)) for weights in ("uniform", "samples")
    )
    assert by_samples.config["method"]["client_weights"] == "samples"
    assert usual.rounds["train_loss"].tolist()[0] == by_samples.rounds["train_loss"].tolist()[0]


def test_a_consensus_without_a_preference_is_refused() -> None:
    with pytest.raises(ConfigError, match="consensus: static has no effect"):
        build([{"method.name": "fedssp", "method.preference": False, "method.consensus": "static"}])


def test_nothing_but_the_spectral_encoders_and_the_mean_leaves_a_client(
    make_local_training: Callable[..., Any],
) -> None:
    local = make_local_training(**GRAPHS)
    model = local.worker.model(0)
    shared = {entry.name for entry in model.entries if entry.shared}
    prefixes = ("body.eigenvalue_encoder.", "body.filter_encoder.")
    own = {name: p for name, p in model.module.named_parameters() if name.startswith(prefixes)}
    assert shared == set(own)  # parameters only: BatchNorm's statistics are buffers and stay
    update, kept = local.train(0, Message(model.take_shared(), {"mean": np.zeros(0, np.float32)}), model.take_private())
    values = sum(parameter.numel() for parameter in own.values())
    assert update.delta.shape == (values,) and set(update.extra) == {"mean"}
    # 8 is the width of the features: the client uploads its encoders and one mean vector, in float32.
    assert pytree.nbytes(update.delta) + pytree.nbytes(update.extra) == 4 * (values + 8)
    assert np.isfinite(update.delta).all() and np.abs(update.delta).max() > 0
    assert len(kept) == model.buffer.numel() - values


def test_a_client_is_judged_with_its_preference(make_local_training: Callable[..., Any]) -> None:
    local = make_local_training(**GRAPHS)
    model = local.worker.model(0)
    kept = local.worker.first_state(0).method
    message = Message(local.worker.model(0).take_shared(), {"mean": np.zeros(0, np.float32)})
    batch = next(iter(local.worker.data(0).test.batches(4)))
    place = next(entry for entry in model.entries if entry.name == "preference")
    assert place.start < len(kept) and not place.shared
    outputs = []
    for value in (0.0, 3.0):
        mine = kept.copy()
        mine[place.start : place.stop] = value
        deployed = local.worker.deployed(0, message, ClientState(mine))
        deployed.module.eval()
        outputs.append(deployed.module(batch.x).detach())
    shift = deployed.module.head.weight.sum(dim=1) * 3.0
    torch.testing.assert_close(outputs[1] - outputs[0], shift.expand_as(outputs[0]), atol=1e-5, rtol=1e-4)


def test_a_run_learns_preferences_and_sends_the_mean_from_round_two(make_config: Callable[..., Any]) -> None:
    result = run(make_config("ssp", **GRAPHS, evaluation__every=1))
    assert result.rounds["validation_accuracy"].notna().all()
    # Round 2's messages hold μ̄ (8 floats for each of 3 clients) besides the encoders.
    assert (result.clients["regularizer"] > 0).tolist() == [False] * 3 + [True] * 6
    down = result.rounds["bytes_down"].tolist()
    assert down[1] - down[0] == 3 * 8 * 4 and down[2] == down[1]


def test_no_preference_with_nothing_shared_is_local(make_config: Callable[..., Any]) -> None:
    alone = run(make_config("alone", **GRAPHS, method__share="nothing", method__preference=False))
    local = run(make_config("local", **{**GRAPHS, "method__name": "local"}))
    for column in ("accuracy", "loss", "train_loss"):
        assert alone.rounds[column].tolist() == local.rounds[column].tolist()


def test_a_model_without_spectral_encoders_is_refused() -> None:
    with pytest.raises(ConfigError, match="Models with them: spectral"):
        check_parts(default_config("fedssp"), ["body.weight", "head.weight"])
    check_parts(build([{"method.name": "fedssp", "method.share": "nothing"}]), ["body.weight", "head.weight"])
