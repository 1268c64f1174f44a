"""q-FedAvg on numbers by hand, against a plain loop over its equations, and where it is FedAvg."""

from __future__ import annotations

import numpy as np
import pytest

from raysim.config.run_config import build
from raysim.config.sections import Training
from raysim.errors import ConfigError
from raysim.methods.fedavg import FedAvg
from raysim.methods.qfedavg import QFedAvg
from tests.raysim.methods.by_hand import context, updates
from tests.raysim.methods.softmax_by_hand import DATA, gradient_of, loss_of, play, start


def test_a_server_step_by_hand() -> None:
    # q = 2, L = 1/η = 2, p = (1/4, 3/4), F = (1, 3), changes (1, 0) and (0, -1): ‖Δw‖² = 4 each.
    # h = (2 · 1 · 4 + 2 · 1, 2 · 3 · 4 + 2 · 9) = (10, 42); Σ p h = 34.
    # Weights p F² L / 34 = (1/2, 27/2) / 34. The buffer is averaged: 1/4 · 8 + 3/4 · 4 = 5.
    given = updates([[1, 0, 8], [0, -1, 4]], [10, 30], received_loss=[1.0, 3.0])
    after = QFedAvg(2.0).aggregate(np.ones(3, np.float32), given, context(learning_rate=0.5))
    assert after == pytest.approx([1 + 1 / 68, 1 - 27 / 68, 6.0])


def test_a_round_of_three_clients() -> None:
    rate, q, theta = 0.25, 0.5, start().take_shared().astype(np.float64)
    numerator, denominator = np.zeros(4), 0.0
    for k in DATA:
        w = theta.copy()
        for sample in DATA[k]:
            w = w - rate * gradient_of(w, *sample)
        share, loss, gradient = len(DATA[k]) / 6, loss_of(theta, k), (theta - w) / rate
        numerator += share * loss**q * gradient
        denominator += share * (q * loss ** (q - 1) * float(gradient @ gradient) + loss**q / rate)
    server, _ = play(QFedAvg(q), ((0, 1, 2),), 1, Training(learning_rate=rate, batch_size=1))
    np.testing.assert_allclose(server, theta - numerator / denominator, rtol=1e-5, atol=1e-6)


def test_with_q_of_zero_it_is_fedavg() -> None:
    training = Training(learning_rate=0.25, batch_size=1)
    fair, _ = play(QFedAvg(0.0), ((0, 2), (1, 2)), 1, training)
    averaged, _ = play(FedAvg(), ((0, 2), (1, 2)), 1, training)
    np.testing.assert_allclose(fair, averaged, rtol=1e-5)


def test_with_adam_it_is_refused_but_for_q_of_zero() -> None:
    """‖Δw‖² of Adam's steps is no squared gradient: at a model's size the server's step would be next to nothing."""
    adam = {"method.name": "qfedavg", "training.optimizer": "adam"}
    with pytest.raises(
        ConfigError, match=r"training\.optimizer: adam is not possible with method qfedavg, which takes"
    ):
        build([adam])
    assert build([{**adam, "method.q": 0.0}]).training.optimizer == "adam"
    assert build([{"method.name": "qfedavg", "workload.name": "toy-graphs"}]).training.optimizer == "sgd"
