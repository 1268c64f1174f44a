"""FedDyn against a plain loop over its equations, and its server step on numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest

from raysim.cohort import Cohort
from raysim.config.sections import Training
from raysim.methods.feddyn import FedDyn, Server
from tests.raysim.methods.by_hand import context, updates
from tests.raysim.methods.softmax_by_hand import COHORTS, DATA, gradient_of, play, start

ALPHA, EPOCHS, RATE = 0.25, 2, 0.125


def test_two_rounds_of_two_clients_out_of_three() -> None:
    theta = start().take_shared().astype(np.float64)
    h, own = np.zeros(4), [np.zeros(4) for _ in DATA]
    for cohort in COHORTS:
        changes = []
        for k in cohort:
            w = theta.copy()
            for sample in DATA[k] * EPOCHS:
                w = w - RATE * (gradient_of(w, *sample) - own[k] + ALPHA * (w - theta))
            own[k] = own[k] - ALPHA * (w - theta)
            changes.append(w - theta)
        h = h - ALPHA / 3 * (changes[0] + changes[1])
        theta = theta + (changes[0] + changes[1]) / 2 - h / ALPHA
    server, states = play(FedDyn(ALPHA), COHORTS, EPOCHS, Training(learning_rate=RATE, batch_size=1))
    assert (h > 0).any() and (h < 0).any()
    np.testing.assert_allclose(server.parameters, theta, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(server.correction, h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(states, own, rtol=1e-5, atol=1e-6)


def test_a_server_step_with_buffers_and_a_client_that_failed() -> None:
    # Two of three sampled clients arrived, of five in all: the mean change is (1, -2), whatever their samples, and of
    # the buffer by samples 0.1 · 6 + 0.9 · 2. h = (1, -1) - 1/2 · 2/5 · (1, -2) = (0.8, -0.6);
    # θ = (10 + 1 - 1.6, 20 - 2 + 1.2), and the buffer 30 + 2.4.
    given = updates([[3, -1, 6], [-1, -3, 2]], [10, 90])
    server = Server(np.array([10, 20, 30], np.float32), np.array([1, -1], np.float32))
    after = FedDyn(0.5).aggregate(server, given, context(cohort=Cohort(3, 150, 4, 300, 5)))
    assert after.parameters == pytest.approx([9.4, 19.2, 32.4])
    assert after.correction == pytest.approx([0.8, -0.6])
    assert after.parameters.dtype == after.correction.dtype == np.float32
