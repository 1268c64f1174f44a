"""FedPer, FedRep and FedBABU against plain loops over their equations, which share no code with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from raysim.methods.fedbabu import FedBABU
from raysim.methods.fedper import FedPer
from raysim.methods.fedrep import FedRep
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


def together(body: Matrix, head: Matrix, samples: Any) -> tuple[Matrix, Matrix]:
    for sample in samples * EPOCHS:
        by_body, by_head = gradients(body, head, *sample)
        body, head = body - RATE * by_body, head - RATE * by_head
    return body, head


def head_then_body(body: Matrix, head: Matrix, samples: Any) -> tuple[Matrix, Matrix]:
    for sample in samples * 3:
        head = head - RATE * gradients(body, head, *sample)[1]
    for sample in samples * EPOCHS:
        body = body - RATE * gradients(body, head, *sample)[0]
    return body, head


def under_the_first_head(body: Matrix, samples: Any) -> Matrix:
    for sample in samples * EPOCHS:
        body = body - RATE * gradients(body, HEAD, *sample)[0]
    return body


def fine_tuned(body: Matrix, samples: Any) -> tuple[Matrix, Matrix]:
    head = HEAD
    for sample in samples * 3:
        by_body, by_head = gradients(body, head, *sample)
        body, head = body - RATE * by_body, head - RATE * by_head
    return body, head


@pytest.mark.parametrize(
    ("method", "client_task"),
    [(FedPer(), together), (FedRep(head_epochs=3), head_then_body)],
)
def test_two_rounds_of_two_clients_out_of_three(method: Any, client_task: Callable[..., tuple[Matrix, Matrix]]) -> None:
    body, heads = BODY, [HEAD for _ in DATA]
    for cohort, weights in zip(COHORTS, WEIGHTS, strict=True):
        results = [client_task(body, heads[i], DATA[i]) for i in cohort]
        body = weights[0] * results[0][0] + weights[1] * results[1][0]
        for i, result in zip(cohort, results, strict=True):
            heads[i] = result[1]
    assert (body > 0).any() and (body < 0).any()
    server, states, model = two_rounds(method)
    for i, head in enumerate(heads):
        found_body, found_head = deployed(method, model, server, i, states[i])
        np.testing.assert_allclose(found_body, body, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found_head, head, rtol=1e-5, atol=1e-6)
    model.reset()
    newcomer = deployed(method, model, server, 3, method.init_client(model))
    np.testing.assert_array_equal(newcomer[1], HEAD.astype(np.float32))


@pytest.mark.parametrize("tune_epochs", [0, 3])
def test_fedbabu_judges_what_was_fine_tuned_from_the_received_model(tune_epochs: int) -> None:
    body = BODY
    tuned: dict[int, tuple[Matrix, Matrix]] = {}
    for cohort, weights in zip(COHORTS, WEIGHTS, strict=True):
        tuned |= {i: fine_tuned(body, DATA[i]) for i in cohort}
        results = [under_the_first_head(body, DATA[i]) for i in cohort]
        body = weights[0] * results[0] + weights[1] * results[1]
    method = FedBABU(tune_epochs=tune_epochs)
    server, states, model = two_rounds(method)
    np.testing.assert_allclose(server.reshape(2, 2), body, rtol=1e-5, atol=1e-6)
    for i in DATA:
        expected = tuned[i] if tune_epochs else (body, HEAD)
        np.testing.assert_allclose(deployed(method, model, server, i, states[i]), expected, rtol=1e-5, atol=1e-6)
