"""FedRAD's two halves: numbers by hand, identities between its ablations, and the gradient NeuNet learns from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.config.run_config import build
from raysim.config.sections import Training
from raysim.errors import ConfigError
from raysim.method import Context, Message, Update, Updates
from raysim.methods.fedrad import FedRAD, Server, estimate
from raysim.running.simulation import run
from raysim.workloads.arrays.array_samples import ArraySamples
from tests.raysim.methods import by_hand
from tests.raysim.methods.by_hand import linear, one_sample
from tests.small_runs import small_run

DELTAS = [[4, 0, 1], [-8, 4, 1], [2, -4, 1]]


def context(**options: Any) -> Context:
    return by_hand.context(learning_rate=0.5, **options)


def updates(accuracies: list[float], losses: list[float], deltas: Any = DELTAS) -> Updates:
    return by_hand.updates(deltas, [1, 2, 5], local_accuracy=accuracies, system_loss=losses, steps=[2.0] * 3)


def server(method: FedRAD) -> Server:
    return replace(method.init_server(linear(method)), parameters=np.zeros(3, np.float32))


def test_weighted_aggregation_by_hand() -> None:
    # acc = 1/2, 1, 1/4: W ∝ 4, 16, 1; times samples 1, 2, 5: 4, 32, 5, so c = 4/41, 32/41, 5/41.
    method = FedRAD(aggregation="weighted")
    told = context()
    found = method.aggregate(server(method), updates([0.5, 1.0, 0.25], [1, 1, 1]), told)
    expected = [(4 * 4 - 32 * 8 + 5 * 2) / 41, (32 * 4 - 5 * 4) / 41, 1.0]
    assert found.parameters == pytest.approx(expected, abs=1e-5)
    assert told.report.client_columns["weight"] == pytest.approx([4 / 41, 32 / 41, 5 / 41])


@pytest.mark.parametrize(("rate", "rounds"), [(FedRAD().neunet_rate, 1), (0.0, 2)])
def test_a_neunet_that_has_learned_nothing_is_weighted_aggregation(rate: float, rounds: int) -> None:
    """Which it has not in the first round, nor ever at a rate of zero."""
    dynamic, weighted = FedRAD(neunet_rate=rate), FedRAD(aggregation="weighted")
    one, other = server(dynamic), server(weighted)
    for losses in ([2.0, 1.0, 3.0], [1.0, 0.5, 2.0])[:rounds]:
        one = dynamic.aggregate(one, updates([0.5, 1.0, 0.25], losses), context())
        other = weighted.aggregate(other, updates([0.5, 1.0, 0.25], losses), context())
    assert np.array_equal(one.parameters, other.parameters)


@pytest.mark.parametrize("rate", [10.0, 100.0])
def test_a_neunet_that_has_learned_gives_another_model_than_weighted_aggregation(tmp_path: Path, rate: float) -> None:
    """At the default rate it moves weights of a third by a tenth of a point and more; the rate says by how much."""
    shared = {"method.name": "fedrad", "method.random_intervals": False, "workload.name": "digits"}
    options = {**shared, "model.name": "logistic", "workload.clients": 3, "schedule.local_epochs": 1}
    dynamic = run(small_run(tmp_path / "dynamic", options, method__neunet_rate=rate, schedule__rounds=6))
    weighted = run(small_run(tmp_path / "weighted", options, method__aggregation="weighted", schedule__rounds=6))
    moved = dynamic.rounds["neunet_correction"].to_numpy()
    assert moved[0] == 0 and 5e-5 * rate < moved[-1] < 1
    one, other = (result.model.state_dict()["head.weight"] for result in (dynamic, weighted))
    assert not one.equal(other)


def test_no_client_right_at_all_is_the_plain_mean() -> None:
    method = FedRAD()
    found = method.aggregate(server(method), updates([0, 0, 0], [1, 1, 1]), context())
    assert found.parameters == pytest.approx([-0.25, -1.5, 1.0], abs=1e-6)


@pytest.mark.parametrize("system_gradient", ["estimate", "exact"])
def test_neunet_moves_weight_to_the_client_that_lowers_the_system_loss(system_gradient: Any) -> None:
    # The second round's gradient is along (1, 0): the first round's client 1 (Δ = -8 there) lowered SysLoss, client 0
    # (Δ = +4) raised it. With the same accuracies again, client 1 must now get more than Eq. 2 gives it.
    method = FedRAD(system_gradient=system_gradient, neunet_rate=0.05)
    accuracies, losses = [0.5, 0.5, 0.5], [2.0, 0.5, 1.0]
    state = method.aggregate(server(method), updates(accuracies, losses), context())
    each = tuple(
        Update(np.array([-1, 0, 0], np.float32), u.metrics, {"test_gradient": np.array([1, 0], np.float32)})
        for u in updates(accuracies, losses).each
    )
    second = context(round=2)
    method.aggregate(state, Updates((0, 1, 2), np.array([1, 2, 5]), each), second)
    weights = second.report.client_columns["weight"]
    # Equal accuracies: Eq. 1-2 alone give the clients' shares of the samples, 1/8, 2/8, 5/8.
    assert weights[1] > 2 / 8
    assert weights[0] < 1 / 8
    assert weights.sum() == pytest.approx(1)


def test_the_exact_gradient_is_that_of_the_mean_test_loss() -> None:
    # Logits (0, 0), x = 1; labels 0, 0, 1: mean gradient of logit 0 is 1/2 - 2/3 = -1/6, of logit 1 it is 1/6. The
    # batches have two and one sample, so a mean of batch means would give -1/2·… and be wrong.
    method = FedRAD(system_gradient="exact")
    task, data = one_sample(epochs=1)
    test = ArraySamples(np.ones((3, 1), np.float32), np.array([0, 0, 1]), "cpu")
    data, task = replace(data, test=test), replace(task, evaluation_batch=2)
    update, _ = method.train(linear(method), data, Message(np.zeros(2, np.float32)), None, task)
    assert update.extra["test_gradient"] == pytest.approx([-1 / 6, 1 / 6], abs=1e-6)
    assert update.metrics["system_loss"] == pytest.approx(np.log(2))
    # Trained on label 0 alone, the model calls everything 0: two of three local test samples are right.
    assert update.metrics["local_accuracy"] == pytest.approx(2 / 3)


def test_clients_need_local_test_sets_unless_the_mean_is_plain() -> None:
    assert FedRAD().traits.local_tests and FedRAD(aggregation="weighted").traits.local_tests
    assert not FedRAD(aggregation="plain").traits.local_tests


def test_exact_gradients_on_real_data_after_an_evaluation(tmp_path: Path) -> None:
    # Clients' cached tensors are first made while a model is evaluated, and then have to serve for a gradient.
    options = {"model.name": "mlp", "workload.clients": 3, "workload.limit": 150, "schedule.rounds": 3}
    exact = small_run(tmp_path / "run", options, method__name="fedrad", method__system_gradient="exact")
    rounds = run(exact).rounds
    assert rounds["neunet_correction"].iloc[0] < 1e-9 < rounds["neunet_correction"].iloc[-1]


def test_a_loss_that_overflows_is_clipped_and_the_round_goes_on() -> None:
    method = FedRAD()
    found = method.aggregate(server(method), updates([0.5, 1.0, 0.25], [1.0, float("inf"), float("nan")]), context())
    assert found.last.losses.tolist() == [1.0, 1e6, 1e6]


def test_what_momentum_and_weight_decay_add_to_updates_is_no_part_of_the_gradient() -> None:
    # One gradient g = (1, 2) everywhere and two steps of size 1/2: Δ = -g without momentum, and with momentum 1/2
    # -(g + 3/2 g)/2 = -5/4 g. A decay of 1/4 at θ = (2, -4) adds (1/2, -1) to g, and SysLoss' gradient is still g.
    gradient, decay, method = np.array([1, 2], np.float32), 0.25, FedRAD(neunet_rate=0.05)
    start = np.array([2, -4, 0], np.float32)
    found = []
    for training, seen in (
        (Training(), -gradient),
        (Training(momentum=0.5), -1.25 * gradient),
        (Training(weight_decay=decay), -(gradient + decay * start[:2])),
    ):
        state = method.aggregate(server(method), updates([0.5] * 3, [2.0, 0.5, 1.0]), context())
        alike = updates([0.5] * 3, [2.0, 0.5, 1.0], [np.append(seen, 0)] * 3)
        later = context(round=2, training=training)
        found.append(method.aggregate(replace(state, parameters=start), alike, later).neunet)
    for other in found[1:]:
        np.testing.assert_allclose(other.last_weight, found[0].last_weight, rtol=1e-6)
    assert np.abs(found[0].last_weight).max() > 1e-3


def test_a_gradient_cannot_be_read_off_adaptive_steps() -> None:
    adamw = {"method.name": "fedrad", "training.optimizer": "adamw", "training.learning_rate": 0.001}
    with pytest.raises(
        ConfigError, match=r"training\.optimizer: adamw .* method\.system_gradient exact any optimizer .*: sgd\."
    ):
        build([adamw])
    kept = {"method.name": "fedrad", "training.momentum": 0.9, "training.optimizer_state": "kept"}
    with pytest.raises(ConfigError, match=r"training\.optimizer_state: kept .* any optimizer .*: fresh\."):
        build([kept])
    build([kept | {"method.system_gradient": "exact"}])
    for allowed in ({"method.system_gradient": "exact"}, {"method.aggregation": "weighted"}, {"method.name": "fedavg"}):
        build([adamw | allowed])


def test_the_gradient_is_read_off_stale_updates_before_they_are_weighted() -> None:
    """Changes −η K (g + w θ_τ) of K = 2 and 4 steps with η = 0.1 and 0.05, w = 0.5, from θ_τ = (2, 0) and (0, 4)."""
    gradients, bases = np.array([[1.0, -2.0], [3.0, 1.0]]), np.array([[2.0, 0.0], [0.0, 4.0]])
    changes = -np.array([[0.2], [0.2]]) * (gradients + 0.5 * bases)
    stale = replace(
        by_hand.updates(changes * 0.25, [1, 3], steps=[2.0, 4.0]),
        unweighted=tuple(changes.astype(np.float32)),
        bases=tuple(bases.astype(np.float32)),
        learning_rates=(0.1, 0.05),
    )
    start = FedRAD().init_server(linear(FedRAD()))
    told = context(training=Training(momentum=0.0, weight_decay=0.5))
    np.testing.assert_allclose(estimate(start, stale, told), 0.25 * gradients[0] + 0.75 * gradients[1], rtol=1e-6)
