"""SCAFFOLD against plain loops over its equations, which share no code with it."""

from __future__ import annotations

import numpy as np
import pytest

from raysim.cohort import Cohort
from raysim.config.run_config import build
from raysim.config.sections import Training
from raysim.errors import ConfigError
from raysim.method import Update, Updates
from raysim.methods.scaffold import Scaffold, Server
from tests.raysim.methods.by_hand import context
from tests.raysim.methods.softmax_by_hand import COHORTS, DATA, Vector, gradient_of, play, start

EPOCHS, RATE = 2, 0.25


def by_hand(start: Vector, momentum: float, decay: float, server_rate: float) -> tuple[Vector, Vector, list[Vector]]:
    """x, c and all c_i after the two rounds."""
    x, c, own = start, np.zeros(4), [np.zeros(4) for _ in DATA]
    for cohort in COHORTS:
        changes, steps = [], []
        for i in cohort:
            y, velocity, gradients = x.copy(), np.zeros(4), []
            for sample in DATA[i] * EPOCHS:
                gradients.append(gradient_of(y, *sample) + decay * y)
                velocity = momentum * velocity + gradients[-1] - own[i] + c
                y = y - RATE * velocity
            # Gradient k of K is in the velocity of every later step: its weight is 1 + μ + … + μ^(K-1-k).
            weights = [sum(momentum**j for j in range(len(gradients) - k)) for k in range(len(gradients))]
            renewed = np.average(gradients, axis=0, weights=weights)
            changes.append(y - x)
            steps.append(renewed - own[i])
            own[i] = renewed
        x = x + server_rate * (changes[0] + changes[1]) / 2
        c = c + (2 / 3) * (steps[0] + steps[1]) / 2
    return x, c, own


@pytest.mark.parametrize(
    ("momentum", "decay", "server_rate"), [(0.0, 0.0, 1.0), (0.0, 0.0, 0.5), (0.5, 0.0, 1.0), (0.5, 0.125, 1.5)]
)
def test_two_rounds_of_two_clients_out_of_three(momentum: float, decay: float, server_rate: float) -> None:
    method = Scaffold(server_rate=server_rate)
    training = Training(learning_rate=RATE, batch_size=1, momentum=momentum, weight_decay=decay)
    expected, control, own = by_hand(start().take_shared().astype(np.float64), momentum, decay, server_rate)
    server, states = play(method, COHORTS, EPOCHS, training)
    assert (expected > 0).any() and (expected < 0).any()
    np.testing.assert_allclose(server.parameters, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(server.control, control, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(states, own, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(server.control, np.mean(own, axis=0), rtol=1e-5, atol=1e-6)


def test_a_server_step_with_buffers_and_a_client_that_failed() -> None:
    # Three of five clients were sampled, two updates arrived, of 10 and 90 samples: the mean change is (1, -2).
    # η_g = 3/2: x = (10, 20) + 3/2 · (1, -2), and the buffer, by samples, 30 + 0.1 · 6 + 0.9 · 2.
    # c = (1, -1) + 1/5 · (5, 10).
    pairs = [([3, -1, 6], [2, 15]), ([-1, -3, 2], [3, -5])]
    each = tuple(Update(np.array(d, np.float32), {}, {"control": np.array(c, np.float32)}) for d, c in pairs)
    told = context(cohort=Cohort(3, 150, 4, 300, 5))
    server = Server(np.array([10, 20, 30], np.float32), np.array([1, -1], np.float32))
    after = Scaffold(server_rate=1.5).aggregate(server, Updates((1, 3), np.array([10, 90]), each), told)
    assert after.parameters == pytest.approx([11.5, 17.0, 32.4])
    assert after.control == pytest.approx([2.0, 1.0])
    assert told.report.round_columns["control_norm"] == pytest.approx(np.hypot(2.0, 1.0))


@pytest.mark.parametrize("method", ["scaffold, which reads", "fednova, which divides a client's change by its steps"])
def test_an_optimizer_whose_steps_are_no_gradients_is_refused(method: str) -> None:
    with pytest.raises(ConfigError, match=rf"adam is not possible with method {method} .* Allowed: sgd"):
        build([{"method.name": method.partition(",")[0], "training.optimizer": "adam"}])
