"""pFedMe against plain loops over its equations, which share no code with it."""

from __future__ import annotations

import numpy as np
import pytest

from raysim.config.run_config import build
from raysim.errors import ConfigError
from raysim.methods.pfedme import PFedMe
from tests.raysim.methods.two_layers import (
    BODY,
    COHORTS,
    DATA,
    EPOCHS,
    HEAD,
    RATE,
    WEIGHTS,
    Matrix,
    deployed,
    gradients,
    two_rounds,
)

ENVELOPE, STEPS, PERSONAL_RATE = 1.5, 3, 0.125


def client_task(start: Matrix, client: int) -> tuple[Matrix, Matrix]:
    """w_i and θ, body and head [2, 2, 2] each."""
    local, own = start, start
    for sample in DATA[client] * EPOCHS:
        for _ in range(STEPS):
            own = own - PERSONAL_RATE * (np.stack(gradients(own[0], own[1], *sample)) + ENVELOPE * (own - local))
        local = local - RATE * ENVELOPE * (local - own)
    return local, own


@pytest.mark.parametrize("server_rate", [1.0, 0.5])
def test_two_rounds_of_two_clients_out_of_three(server_rate: float) -> None:
    common = np.stack([BODY, HEAD])
    own: dict[int, Matrix] = {}
    for cohort, weights in zip(COHORTS, WEIGHTS, strict=True):
        results = [client_task(common, i) for i in cohort]
        own |= {i: result[1] for i, result in zip(cohort, results, strict=True)}
        mean = weights[0] * results[0][0] + weights[1] * results[1][0]
        common = (1 - server_rate) * common + server_rate * mean
    assert (common > 0).any() and (common < 0).any()
    method = PFedMe(ENVELOPE, STEPS, PERSONAL_RATE, server_rate)
    server, states, model = two_rounds(method)
    np.testing.assert_allclose(server.reshape(2, 2, 2), common, rtol=1e-5, atol=1e-6)
    for i, expected in own.items():
        np.testing.assert_allclose(deployed(method, model, server, i, states[i]), expected, rtol=1e-5, atol=1e-6)
    newcomer = deployed(method, model, server, 3, method.init_client(model))
    np.testing.assert_allclose(newcomer, common, rtol=1e-5, atol=1e-6)


def test_steps_that_diverge_are_refused() -> None:
    build([{"method.name": "pfedme", "method.envelope": 15.0, "method.personal_rate": 0.125}])
    with pytest.raises(ConfigError, match=r"method: personal_rate 0\.125 × envelope 16\.0 must be < 2"):
        build([{"method.name": "pfedme", "method.envelope": 16.0, "method.personal_rate": 0.125}])
