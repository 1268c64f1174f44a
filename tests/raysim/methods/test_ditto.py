"""Ditto against plain loops over its equations, which share no code with it."""

from __future__ import annotations

import numpy as np
import pytest

from raysim.methods.ditto import Ditto
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


def steps(start: Matrix, anchor: Matrix, pull: float, client: int) -> Matrix:
    """Body and head [2, 2, 2] after a client's steps."""
    for sample in DATA[client] * EPOCHS:
        start = start - RATE * (np.stack(gradients(start[0], start[1], *sample)) + pull * (start - anchor))
    return start


@pytest.mark.parametrize("pull", [0.0, 0.5])
def test_two_rounds_of_two_clients_out_of_three(pull: float) -> None:
    common = np.stack([BODY, HEAD])
    own: dict[int, Matrix] = {}
    for cohort, weights in zip(COHORTS, WEIGHTS, strict=True):
        own |= {i: steps(own.get(i, common), common, pull, i) for i in cohort}
        results = [steps(common, common, 0.0, i) for i in cohort]
        common = weights[0] * results[0] + weights[1] * results[1]
    assert (common > 0).any() and (common < 0).any()
    method = Ditto(pull=pull)
    server, states, model = two_rounds(method)
    np.testing.assert_allclose(server.reshape(2, 2, 2), common, rtol=1e-5, atol=1e-6)
    for i, expected in own.items():
        np.testing.assert_allclose(deployed(method, model, server, i, states[i]), expected, rtol=1e-5, atol=1e-6)
    newcomer = deployed(method, model, server, 3, method.init_client(model))
    np.testing.assert_allclose(newcomer, common, rtol=1e-5, atol=1e-6)
