"""FedProto against plain loops over its equations, which share no code with it."""

from __future__ import annotations

import numpy as np
import pytest

from raysim.methods.fedproto import FedProto
from tests.raysim.methods.softmax_by_hand import COHORTS, DATA
from tests.raysim.methods.two_layers import EPOCHS, RATE, START, Matrix, gradient, two_rounds


def steps(model: Matrix, prototypes: dict[int, Matrix], pull: float, client: int) -> Matrix:
    """Body and head [2, 2, 2] after a client's steps."""
    for x, label in DATA[client] * EPOCHS:
        slope = gradient(model, (x, label))
        if label in prototypes:  # λ / 2 · ‖B x − c‖², the mean over two features
            slope[0] += pull * np.outer(model[0] @ np.array(x) - prototypes[label], x)
        model = model - RATE * slope
    return model


@pytest.mark.parametrize("pull", [0.0, 0.6])
def test_two_rounds_of_two_clients_out_of_three(pull: float) -> None:
    prototypes: dict[int, Matrix] = {}
    models = dict.fromkeys(DATA, START)
    for cohort in COHORTS:
        models |= {i: steps(models[i], prototypes, pull, i) for i in cohort}
        features = [(models[i][0] @ np.array(x), label) for i in cohort for x, label in DATA[i]]
        for label in (0, 1):
            prototypes[label] = np.mean([found for found, known in features if known == label], axis=0)
    assert all((each > 0).any() and (each < 0).any() for each in models.values())
    server, states, _ = two_rounds(FedProto(pull=pull))
    np.testing.assert_allclose(server.centroids, [prototypes[0], prototypes[1]], rtol=1e-5, atol=1e-6)
    assert server.centroid_samples.tolist() == [3, 2]  # of clients 1 and 2
    for state, expected in zip(states, models.values(), strict=True):
        np.testing.assert_allclose(state.reshape(2, 2, 2), expected, rtol=1e-5, atol=1e-6)


def test_only_prototypes_travel() -> None:
    method = FedProto()
    server, _, model = two_rounds(method)
    assert model.shared.numel() == 0 and method.message(server, 0).parameters.size == 0
    assert method.message(server, 0).nbytes == 2 * 2 * 4 + 2 * 8
