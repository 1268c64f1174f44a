"""Per-FedAvg against plain loops over its equations, which share no code with it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from raysim.methods.perfedavg import PerFedAvg
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

ALPHA, DELTA = 0.3, 0.01


def gradient(w: Matrix, sample: tuple[list[float], int]) -> Matrix:
    return np.stack(gradients(w[0], w[1], *sample))


def steps(w: Matrix, client: int, variant: str) -> Matrix:
    """Body and head [2, 2, 2] after a client's steps; D, D' and D'' of a step are the same sample here."""
    for sample in DATA[client] * EPOCHS:
        g = v = gradient(w - ALPHA * gradient(w, sample), sample)
        if variant == "hf":
            g = v - ALPHA * (gradient(w + DELTA * v, sample) - gradient(w - DELTA * v, sample)) / (2 * DELTA)
        w = w - RATE * g
    return w


@pytest.mark.parametrize("variant", ["fo", "hf"])
def test_two_rounds_of_two_clients_out_of_three(variant: Literal["fo", "hf"]) -> None:
    common = np.stack([BODY, HEAD])
    own: dict[int, Matrix] = {}
    for cohort, weights in zip(COHORTS, WEIGHTS, strict=True):
        own |= {i: common - ALPHA * np.mean([gradient(common, sample) for sample in DATA[i]], axis=0) for i in cohort}
        results = [steps(common, i, variant) for i in cohort]
        common = weights[0] * results[0] + weights[1] * results[1]
    assert (common > 0).any() and (common < 0).any()
    method = PerFedAvg(variant, adaptation_rate=ALPHA, difference=DELTA)
    server, states, model = two_rounds(method)
    np.testing.assert_allclose(server.reshape(2, 2, 2), common, rtol=2e-4, atol=2e-5)
    for i, expected in own.items():
        np.testing.assert_allclose(deployed(method, model, server, i, states[i]), expected, rtol=2e-4, atol=2e-5)
    newcomer = deployed(method, model, server, 3, method.init_client(model))
    np.testing.assert_allclose(newcomer, common, rtol=2e-4, atol=2e-5)


def test_the_two_variants_differ() -> None:
    common = np.stack([BODY, HEAD])
    assert np.abs(steps(common, 2, "hf") - steps(common, 2, "fo")).max() > 1e-3
