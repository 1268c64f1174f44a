"""FedNova on numbers by hand, on clients with unequal steps, and where it is FedAvg."""

from __future__ import annotations

import numpy as np
import pytest

from raysim.config.sections import Training
from raysim.methods.fedavg import FedAvg
from raysim.methods.fednova import FedNova
from tests.raysim.methods.by_hand import context, updates
from tests.raysim.methods.softmax_by_hand import DATA, gradient_of, play, start


def test_a_server_step_by_hand() -> None:
    # p = (1/4, 3/4), 2 and 6 steps: Σ p a = 5. Parameters: 5 (1/4 (4, -8) / 2 + 3/4 (-12, 4) / 6) = (-5, -2.5);
    # the buffer is averaged: 1/4 · 8 + 3/4 · 4 = 5.
    told = context()
    given = updates([[4, -8, 8], [-12, 4, 4]], [10, 30], steps=[2.0, 6.0])
    after = FedNova().aggregate(np.ones(3, np.float32), given, told)
    assert after.tolist() == [-4.0, -1.5, 6.0] and told.report.round_columns == {"effective_steps": 5.0}
    assert told.report.client_columns["weight"].tolist() == [5 / 4 / 2, 5 * 3 / 4 / 6]


def test_a_client_without_a_step_has_no_change_to_divide() -> None:
    after = FedNova().aggregate(np.zeros(1, np.float32), updates([[0], [1]], [1, 1], steps=[0.0, 4.0]), context(1))
    assert after.tolist() == [0.25]  # (1/2 · 0 + 1/2 · 4) · 1/2 · 1/4


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_a_round_of_clients_with_two_four_and_six_steps(momentum: float) -> None:
    rate, epochs, theta = 0.25, 2, start().take_shared().astype(np.float64)
    changes, lengths = [], []
    for k in DATA:
        w, velocity = theta.copy(), np.zeros(4)
        for sample in DATA[k] * epochs:
            velocity = momentum * velocity + gradient_of(w, *sample)
            w = w - rate * velocity
        steps = len(DATA[k]) * epochs
        lengths.append(sum(sum(momentum**j for j in range(steps - step)) for step in range(steps)))
        changes.append(w - theta)
    shares = np.array([1, 2, 3]) / 6
    directions = sum(share * change / length for share, change, length in zip(shares, changes, lengths, strict=True))
    training = Training(learning_rate=rate, batch_size=1, momentum=momentum)
    server, _ = play(FedNova(), ((0, 1, 2),), epochs, training)
    np.testing.assert_allclose(server, theta + float(shares @ lengths) * directions, rtol=1e-5, atol=1e-6)
    averaged, _ = play(FedAvg(), ((0, 1, 2),), epochs, training)
    assert np.abs(server - averaged).max() > 0.01
