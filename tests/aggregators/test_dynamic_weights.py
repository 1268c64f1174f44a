from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.aggregators.dynamic_weights import (
    NeuNet,
    accuracy_weights,
    coefficient_gradient,
    coefficients,
    estimated_gradient,
    learn,
    updated_weights,
)
from raysim.aggregators.means import BLOCK, sample_weights


def test_accuracy_weights_and_coefficients_by_hand() -> None:
    # squares 0.81, 0.36, 0.09, sum 1.26
    weights = accuracy_weights([0.9, 0.6, 0.3])
    np.testing.assert_allclose(weights, [9 / 14, 4 / 14, 1 / 14], rtol=1e-15)
    # W m in fourteenths: 90, 80, 70, sum 240
    np.testing.assert_allclose(coefficients(weights, [10, 20, 70]), [3 / 8, 1 / 3, 7 / 24], rtol=1e-15)


def test_coefficients_fall_back_to_sample_shares() -> None:
    weights = accuracy_weights([0.0, 0.0])
    assert weights.tolist() == [0.0, 0.0]
    assert coefficients(weights, [1, 3]).tolist() == [0.25, 0.75]
    # weight and samples on different clients: nothing to normalize either
    assert coefficients(np.array([1.0, 0.0]), [0, 5]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("accuracies", [[0.5, float("nan")], [-0.1], [68.7]])
def test_accuracies_must_be_fractions(accuracies: list[float]) -> None:
    with pytest.raises(ValueError, match="fractions"):
        accuracy_weights(accuracies)


def test_updated_weights_and_learn_by_hand() -> None:
    # One hidden unit that sees the loss only: tanh(a · loss) = (0, 1/2) for losses (0, 1); v = 2 makes logits (0, 1).
    a = np.arctanh(0.5)
    net = NeuNet(np.array([[0.0], [0.0], [a]]), np.zeros(1), np.array([2.0]))
    weights, shares, losses, samples = np.array([0.75, 0.25]), np.array([0.25, 0.75]), np.array([0.0, 1.0]), [1, 3]
    updated = updated_weights(net, weights, shares, losses)
    np.testing.assert_allclose(updated, np.array([3, np.e]) / (3 + np.e), rtol=1e-14)
    # W' m ∝ (3, 3e), so c = (1, e) / (1 + e). With g = (3, -1): ∂/∂logit = q (1, -1), q = 4 c_1 c_2.
    q = 4 * np.e / (1 + np.e) ** 2
    # ∂/∂v = Σ h_k ∂_k = -q/2; through v and tanh' = (1, 3/4): ∂/∂pre = q (2, -3/2); ∂/∂b = q/2;
    # ∂/∂A = q (0.75·2 - 0.25·1.5, 0.25·2 - 0.75·1.5, 0·2 - 1·1.5) = q (1.125, -0.625, -1.5)
    stepped = learn(net, weights, shares, losses, samples, np.array([3.0, -1.0]), rate=0.1)
    np.testing.assert_allclose(stepped.last_weight, [2 + 0.05 * q], rtol=1e-14)
    np.testing.assert_allclose(stepped.first_bias, [-0.05 * q], rtol=1e-14)
    np.testing.assert_allclose(
        stepped.first_weight, [[-0.1125 * q], [0.0625 * q], [a + 0.15 * q]], rtol=1e-13, atol=1e-16
    )


@dataclass(frozen=True)
class Quadratic:
    """SysLoss(θ) = ½ (θ-a)ᵀ H (θ-a), and a round of clients with mixed losses, sizes and one zero accuracy."""

    start: np.ndarray
    models: np.ndarray
    optimum: np.ndarray
    curvature: np.ndarray
    weights: np.ndarray
    losses: np.ndarray
    samples: np.ndarray

    @classmethod
    def draw(cls, seed: int, clients: int = 5, size: int = 7) -> Quadratic:
        generator = np.random.default_rng(seed)
        root = generator.standard_normal((size, size))
        accuracies = generator.uniform(0.1, 1, clients)
        accuracies[0] = 0.0
        start = generator.standard_normal(size) * 10
        return cls(
            start=start,
            models=start + generator.standard_normal((clients, size)),
            optimum=generator.standard_normal(size),
            curvature=root @ root.T / size,
            weights=accuracy_weights(accuracies),
            losses=generator.uniform(0, 3, clients),
            samples=generator.integers(1, 100, clients),
        )

    @property
    def shares(self) -> np.ndarray:
        return sample_weights(self.samples)

    def model(self, net: NeuNet) -> np.ndarray:
        updated = updated_weights(net, self.weights, self.shares, self.losses)
        model: np.ndarray = coefficients(updated, self.samples) @ self.models
        return model

    def system_loss(self, net: NeuNet) -> float:
        distance = self.model(net) - self.optimum
        return float(distance @ self.curvature @ distance / 2)

    def gradient(self, net: NeuNet) -> np.ndarray:
        gradient: np.ndarray = self.curvature @ (self.model(net) - self.optimum)
        return gradient

    def learn(self, net: NeuNet, by_coefficient: np.ndarray, rate: float) -> NeuNet:
        return learn(net, self.weights, self.shares, self.losses, self.samples, by_coefficient, rate)


def trained_net(seed: int, hidden: int = 4) -> NeuNet:
    generator = np.random.default_rng(seed)
    net = NeuNet.create(generator, hidden)
    return replace(net, last_weight=generator.standard_normal(hidden))


def parameters(net: NeuNet) -> list[np.ndarray]:
    return [getattr(net, field.name) for field in fields(net)]


def central_differences(net: NeuNet, function: Callable[[NeuNet], float], step: float = 1e-6) -> list[np.ndarray]:
    slopes = []
    for field in fields(net):
        value = getattr(net, field.name)
        slope = np.empty_like(value)
        for index in np.ndindex(value.shape):
            shift = np.zeros_like(value)
            shift[index] = step
            up = function(replace(net, **{field.name: value + shift}))
            down = function(replace(net, **{field.name: value - shift}))
            slope[index] = (up - down) / (2 * step)
        slopes.append(slope)
    return slopes


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", ["models", "updates", "float32 updates"])
def test_learning_follows_finite_differences(seed: int, form: str) -> None:
    problem, net = Quadratic.draw(seed), trained_net(seed)
    gradient, deltas = problem.gradient(net), problem.models - problem.start
    if form == "models":  # as METHODS and the chain rule have it: ⟨∇, θ_k⟩
        by_coefficient = problem.models @ gradient
    elif form == "updates":  # ⟨∇, Δ_k⟩ differs by a constant, which must not matter
        by_coefficient = deltas @ gradient
    else:
        by_coefficient = coefficient_gradient(gradient.astype(np.float32), list(deltas.astype(np.float32)))
    stepped = problem.learn(net, by_coefficient, rate=1.0)
    for before, after, slope in zip(
        parameters(net), parameters(stepped), central_differences(net, problem.system_loss), strict=True
    ):
        assert np.abs(slope).max() > 1e-3
        np.testing.assert_allclose(before - after, slope, rtol=1e-5, atol=1e-5 if "32" in form else 1e-7)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_estimated_gradient_with_momentum_has_the_gradients_length(momentum: float) -> None:
    # A linear loss has one gradient everywhere: whatever the momentum and the steps, torch's own SGD must be undone.
    gradient, steps = torch.tensor([3.0, -1.0, 0.25]), [1, 2, 7]
    deltas = []
    for count in steps:
        weights = torch.zeros(3, requires_grad=True)
        optimizer = torch.optim.SGD([weights], lr=0.125, momentum=momentum)
        for _ in range(count):
            weights.grad = gradient.clone()
            optimizer.step()
        deltas.append(weights.detach().numpy())
    estimate = estimated_gradient(deltas, [5, 1, 2], 0.125, steps, momentum)
    np.testing.assert_allclose(estimate, gradient.numpy(), rtol=1e-6)


def test_estimated_gradient_by_hand() -> None:
    deltas = [np.array([1, -2], np.float32), np.array([-4, 8], np.float32)]
    # p = (1/4, 3/4), lr·steps = (1, 2): -(1/4·1 + 3/4·(-4)/2) = 1.25; -(1/4·(-2) + 3/4·8/2) = -2.5
    assert estimated_gradient(deltas, [1, 3], 0.5, [2, 4]).tolist() == [1.25, -2.5]
    with pytest.raises(ValueError, match="positive"):
        estimated_gradient(deltas, [1, 3], 0.5, [2, 0])


def test_coefficient_gradient_by_hand_and_over_blocks() -> None:
    gradient = np.array([1, -2, 3], np.float32)
    deltas = [np.array([4, 5, -6], np.float32), np.array([-1, 0, 2], np.float32)]
    assert coefficient_gradient(gradient, deltas).tolist() == [4 - 10 - 18, -1 + 6]
    ones = np.ones(2 * BLOCK + 3, np.float32)
    assert coefficient_gradient(ones, [ones, -2 * ones]).tolist() == [2 * BLOCK + 3, -2 * (2 * BLOCK + 3)]
    with pytest.raises(ValueError, match="vector 1"):
        coefficient_gradient(gradient, [ones])


CLIENT = st.tuples(
    st.floats(0, 1),  # accuracy
    st.integers(1, 1000),  # samples
    st.one_of(st.floats(0, 10), st.sampled_from([1e6, 1e300, float("inf"), float("nan")])),  # loss
    st.floats(-1e3, 1e3),  # gradient by coefficient
)


def arrays(clients: list[tuple[float, int, float, float]]) -> tuple[np.ndarray, ...]:
    accuracies, samples, losses, slopes = (np.array(column) for column in zip(*clients, strict=True))
    return accuracy_weights(accuracies), sample_weights(samples), losses, samples, slopes


@settings(deadline=None, max_examples=50)
@given(st.lists(CLIENT, min_size=1, max_size=20), st.integers(0, 1000))
def test_untrained_net_changes_nothing(clients: list[tuple[float, int, float, float]], seed: int) -> None:
    weights, shares, losses, _, _ = arrays(clients)
    updated = updated_weights(NeuNet.create(np.random.default_rng(seed)), weights, shares, losses)
    np.testing.assert_allclose(updated, weights, rtol=1e-15, atol=0)


@settings(deadline=None, max_examples=50)
@given(st.lists(CLIENT, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_any_order_any_number_and_never_nan(clients: list[tuple[float, int, float, float]], random: object) -> None:
    weights, shares, losses, samples, slopes = arrays(clients)
    net = trained_net(7)
    updated = updated_weights(net, weights, shares, losses)
    stepped = learn(net, weights, shares, losses, samples, slopes, 0.1)
    assert np.isfinite(updated).all()
    assert updated.sum() == pytest.approx(1.0 if weights.any() else 0.0)
    assert np.all(updated[weights == 0] == 0)
    assert all(np.isfinite(value).all() for value in parameters(stepped))

    order = list(range(len(clients)))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = updated_weights(net, weights[order], shares[order], losses[order])
    np.testing.assert_allclose(shuffled, updated[order], rtol=1e-12)
    again = learn(net, weights[order], shares[order], losses[order], samples[order], slopes[order], 0.1)
    for one, other in zip(parameters(stepped), parameters(again), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(one).max())


def test_learning_leaves_the_net_where_it_had_no_part_or_the_gradient_diverged() -> None:
    net, shares, losses = trained_net(1), np.array([0.5, 0.5]), np.array([1.0, 2.0])
    assert learn(net, np.zeros(2), shares, losses, [1, 1], np.array([1.0, -1.0]), 0.1) is net
    for slope in (float("nan"), float("inf"), 1e308, 1e150):
        assert learn(net, np.array([0.3, 0.7]), shares, losses, [1, 1], np.array([slope, -slope]), 0.1) is net


def test_creation_depends_on_the_generator_only() -> None:
    one, same, other = (NeuNet.create(np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert one.first_weight.shape == (3, 16)
    assert np.array_equal(one.first_weight, same.first_weight)
    assert not np.array_equal(one.first_weight, other.first_weight)
    assert not one.last_weight.any()


def test_huge_logits_stay_finite_and_a_client_without_weight_has_no_say() -> None:
    # logits -2500, 2500, 5000: far beyond exp's range, and the largest belongs to a client whose weight is zero
    net = NeuNet(np.array([[0.0], [0.0], [1e3]]), np.zeros(1), np.array([5000.0]))
    weights, shares = np.array([0.5, 0.5, 0.0]), np.full(3, 1 / 3)
    half = np.arctanh(0.5) / 1e3
    assert updated_weights(net, weights, shares, np.array([-half, half, 9.0])).tolist() == [0.0, 1.0, 0.0]
    assert updated_weights(net, weights, shares, np.array([-half, -half, 9.0])).tolist() == [0.5, 0.5, 0.0]
