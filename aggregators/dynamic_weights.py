"""FedRAD's dynamic aggregation: accuracy weights and the network that learns to correct them.

Source: Huang et al., "Federated Learning with Random Communication and Dynamic Aggregation", 2021, Eq. 1-3.
Departures from the print, each where it applies: the coefficients are normalized, and Eq. 3 (gradient descent on "W")
is a small network whose parameters descend.

A round t of a server, in order (clients k = 1..n, m_k samples, p_k = m_k / Σ m_j, Δ_k = θ_k - θ_prev):
    1. SysLoss was just measured on the model that round t-1 made: ``system_gradient`` is its gradient there.
       g = coefficient_gradient(system_gradient, Δ of round t-1); net = learn(net, W, p, loss, m of round t-1, g, rate)
    2. W = accuracy_weights(accuracies); W' = updated_weights(net, W, p, loss); c = coefficients(W', m)
    3. θ = θ_prev + Σ_k c_k Δ_k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raysim.aggregators.descent import plain_steps
from raysim.aggregators.gram import Doubles
from raysim.aggregators.means import BLOCK, check_vectors, sample_weights, weighted_sum

LOSS_BOUND = 1e6
"""Losses enter NeuNet clipped to ± this; a diverged client (NaN) counts as this bad."""

PARAMETER_BOUND = 1e100
"""NeuNet refuses a step beyond this, far below where its products would overflow."""


def accuracy_weights(accuracies: ArrayLike) -> Doubles:
    """Eq. 2: W_k = acc_k² / Σ_j acc_j², float64 [n]; all zeros if every accuracy is zero (see ``coefficients``).

    Args:
        accuracies: [n], fractions in [0, 1]: each client's model on its own local test set after local training.

    Raises:
        ValueError: an accuracy outside [0, 1], or NaN.
    """
    fractions = np.asarray(accuracies, np.float64)
    if not np.all((fractions >= 0) & (fractions <= 1)):
        raise ValueError(f"accuracies must be fractions in [0, 1], got {fractions}")
    squares = fractions**2
    total = squares.sum()
    return np.asarray(squares / total) if total > 0 else np.zeros_like(squares)


def coefficients(weights: Doubles, samples: Sequence[int] | NDArray[np.int64]) -> Doubles:
    """Eq. 1, normalized: c_k = W_k m_k / Σ_j W_j m_j, float64 [n]; c = p if no client has both weight and samples.

    Departure: the printed W_k m_k / m do not sum to one (with equal sizes to 1/n), which would shrink the model.
    """
    shares = sample_weights(samples)
    products = np.asarray(weights, np.float64) * shares
    total = products.sum()
    return np.asarray(products / total) if total > 0 else shares


@dataclass(frozen=True, eq=False)
class NeuNet:
    """The 2-layer network of section 3.2, one for all clients: logit_k = tanh([W_k, p_k, loss_k] A + b) · v.

    It serves any number of clients, since each is only a row of its input. The last layer has no bias: the softmax over
    clients would cancel it. All float64.
    """

    first_weight: Doubles
    """A, [3, hidden]."""
    first_bias: Doubles
    """b, [hidden]."""
    last_weight: Doubles
    """v, [hidden]; zero at the start, so that the untrained network changes nothing."""

    @classmethod
    def create(cls, generator: np.random.Generator, hidden: int = 16) -> NeuNet:
        """An untrained network; the first layer uniform in ±1/√3 (3 inputs), the last one zero."""
        bound = 3**-0.5
        return cls(
            first_weight=generator.uniform(-bound, bound, (3, hidden)),
            first_bias=generator.uniform(-bound, bound, hidden),
            last_weight=np.zeros(hidden),
        )


def updated_weights(net: NeuNet, weights: Doubles, shares: Doubles, losses: Doubles) -> Doubles:
    """W' = softmax(log W + logit), float64 [n].

    W_k = 0 stays 0, an all-zero W is returned unchanged, and an untrained network returns W. Losses of any size are
    harmless: they are clipped to ±``LOSS_BOUND`` and saturate the tanh, so W' is always finite.

    Args:
        weights: W [n] from ``accuracy_weights``.
        shares: p [n] from ``means.sample_weights``.
        losses: [n], each client's local test loss of the global model that the round started from.
    """
    positive = weights > 0
    if not positive.any():
        return weights
    logits = _hidden(net, _inputs(weights, shares, losses)) @ net.last_weight
    # Multiplying W instead of adding log W keeps zeros and, with equal logits, the very bits of W / ΣW. The maximum is
    # taken over clients that count, so that one without weight cannot push all others to zero; hence the minimum.
    scaled = weights * np.exp(np.minimum(logits - logits[positive].max(), 0.0))
    return np.asarray(scaled / scaled.sum())


def learn(  # noqa: PLR0913 - the symbols of Eq. 3
    net: NeuNet,
    weights: Doubles,
    shares: Doubles,
    losses: Doubles,
    samples: Sequence[int] | NDArray[np.int64],
    coefficient_gradients: Doubles,
    rate: float,
) -> NeuNet:
    """Eq. 3 as one step of gradient descent on NeuNet's parameters: net - rate · ∂SysLoss/∂net.

    SysLoss depends on the network through c_k = W'_k m_k / Σ_j W'_j m_j. As W' is a softmax, c is one too, that of
    log(W_k m_k) + logit_k, and ∂SysLoss/∂logit_k = c_k (g_k - Σ_j c_j g_j) with g = ``coefficient_gradients``: adding
    one constant to all g_k changes nothing.

    All arguments are those of the round that made the model on which SysLoss was measured (``weights`` is its W, not
    W'); g comes from ``coefficient_gradient``. If W is all zero, the network had no part in that model, and it is
    returned unchanged. So it is if the step would lead beyond ``PARAMETER_BOUND`` or to NaN: a diverged gradient
    teaches nothing.
    """
    if not np.any(weights * shares > 0):
        return net
    inputs = _inputs(weights, shares, losses)
    hidden = _hidden(net, inputs)
    mixture = coefficients(updated_weights(net, weights, shares, losses), samples)
    with np.errstate(over="ignore", invalid="ignore"):
        by_logit = mixture * (coefficient_gradients - mixture @ coefficient_gradients)
        by_hidden = np.outer(by_logit, net.last_weight) * (1.0 - hidden**2)
        stepped = NeuNet(
            first_weight=net.first_weight - rate * (inputs.T @ by_hidden),
            first_bias=net.first_bias - rate * by_hidden.sum(axis=0),
            last_weight=net.last_weight - rate * (hidden.T @ by_logit),
        )
    layers = (stepped.first_weight, stepped.first_bias, stepped.last_weight)
    return stepped if all(np.all(np.abs(layer) < PARAMETER_BOUND) for layer in layers) else net


def coefficient_gradient(system_gradient: NDArray[np.float32], deltas: Sequence[NDArray[np.float32]]) -> Doubles:
    """∂SysLoss/∂c_k up to a constant common to all k: ⟨∇SysLoss(θ), Δ_k⟩, float64 [n].

    By the chain rule through θ = Σ_k c_k θ_k it is ⟨∇SysLoss(θ), θ_k⟩. With θ_k = θ_prev + Δ_k all of these share
    ⟨∇SysLoss(θ), θ_prev⟩, and since Σ_k c_k = 1 such a constant has no effect (see ``learn``); leaving it out also
    spares its rounding error, as θ_prev is much longer than Δ_k.

    Args:
        system_gradient: ∇SysLoss [d] at the model that the coefficients made.
        deltas: n updates [d] of the round that made it.
    """
    check_vectors([system_gradient, *deltas])
    # A float32 product is exact in float64, and block sums added in order do not depend on the threads of a BLAS.
    product_buffer = np.empty(min(BLOCK, system_gradient.size), np.float64)
    sums = np.zeros(len(deltas))
    for start in range(0, system_gradient.size, BLOCK):
        gradient = system_gradient[start : start + BLOCK].astype(np.float64)
        product = product_buffer[: gradient.size]
        for position, delta in enumerate(deltas):
            np.multiply(gradient, delta[start : start + BLOCK], out=product)
            sums[position] += product.sum()
    return sums


def estimated_gradient(
    deltas: Sequence[NDArray[np.float32]],
    samples: Sequence[int] | NDArray[np.int64],
    learning_rate: float | Doubles,
    steps: Sequence[int] | NDArray[np.int64],
    momentum: float = 0.0,
) -> NDArray[np.float32]:
    """∇SysLoss at the round's starting model, from its own updates: -Σ_k p_k Δ_k / (learning_rate · steps_k), [d].

    Exact for SGD as learning_rate · steps → 0, if the local test data follow the training data's distribution. With
    momentum, ``plain_steps`` (aggregators/descent.py) stand in the place of steps_k. Weight decay w adds w θ, which is
    the caller's to subtract. For Adam and AdamW, whose steps do not follow the gradient's length, there is no such
    estimate.

    Args:
        deltas: n updates float32 [d] of the round that started from the model in question.
        samples: n numbers of training samples.
        learning_rate: of the local SGD, positive; one for all, or each client's [n].
        steps: n numbers of local SGD steps, each at least 1.
        momentum: μ of the local SGD, in [0, 1), from a velocity of zero.

    Raises:
        ValueError: a learning rate or a number of steps that is not positive.
    """
    if np.min(learning_rate) <= 0 or np.min(steps) < 1:
        raise ValueError(f"learning rate and steps must be positive, got {learning_rate} and {steps}")
    return weighted_sum(deltas, list(-sample_weights(samples) / (learning_rate * plain_steps(steps, momentum))))


def _inputs(weights: Doubles, shares: Doubles, losses: Doubles) -> Doubles:
    bounded = np.nan_to_num(losses, nan=LOSS_BOUND, posinf=LOSS_BOUND, neginf=-LOSS_BOUND)
    return np.stack([weights, shares, np.clip(bounded, -LOSS_BOUND, LOSS_BOUND)], axis=1)


def _hidden(net: NeuNet, inputs: Doubles) -> Doubles:
    return np.asarray(np.tanh(inputs @ net.first_weight + net.first_bias))
