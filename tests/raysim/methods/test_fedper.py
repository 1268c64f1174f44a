"""FedPer, FedRep and FedBABU against plain loops over their equations, which share no code with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from raysim.methods.fedbabu import FedBABU
from raysim.methods.fedper import FedPer
from raysim.methods.fedrep import FedRep
from tests.raysim.methods.softmax_by_hand import DATA
from tests.raysim.methods.two_layers import (
    BODY,
    EPOCHS,
    HEAD,
    NEWCOMER,
    RATE,
    Matrix,
    check,
    gradient,
    rounds_by_hand,
    steps,
)


def trained(body: Matrix, head: Matrix, samples: Any, parts: tuple[int, int]) -> Matrix:
    """Body and head after steps of the parts that count 1."""
    model = np.stack([body, head])
    for sample in samples:
        model = model - RATE * np.array(parts)[:, None, None] * gradient(model, sample)
    return model


def together(body: Matrix, head: Matrix, client: int) -> Matrix:
    return steps(np.stack([body, head]), client)


def head_then_body(body: Matrix, head: Matrix, client: int) -> Matrix:
    fitted = trained(body, head, DATA[client] * 3, (0, 1))
    return trained(body, fitted[1], DATA[client] * EPOCHS, (1, 0))


@pytest.mark.parametrize(
    ("method", "client_task"),
    [(FedPer(), together), (FedRep(head_epochs=3), head_then_body)],
)
def test_two_rounds_of_two_clients_out_of_three(method: Any, client_task: Callable[..., Matrix]) -> None:
    def body_and_own_head(body: Matrix, own: Matrix | None, client: int) -> tuple[Matrix, Matrix]:
        after = client_task(body, HEAD if own is None else own, client)
        return after[0], after[1]

    body, heads = rounds_by_hand(BODY, body_and_own_head)
    check(method, body, {i: (body, head) for i, head in heads.items()} | {NEWCOMER: (body, HEAD)})


@pytest.mark.parametrize("tune_epochs", [0, 3])
def test_fedbabu_judges_what_was_fine_tuned_from_the_received_model(tune_epochs: int) -> None:
    def client_task(body: Matrix, own: Matrix | None, client: int) -> tuple[Matrix, Matrix]:
        tuned = trained(body, HEAD, DATA[client] * 3, (1, 1))
        return trained(body, HEAD, DATA[client] * EPOCHS, (1, 0))[0], tuned

    body, tuned = rounds_by_hand(BODY, client_task)
    check(FedBABU(tune_epochs=tune_epochs), body, tuned if tune_epochs else dict.fromkeys(DATA, (body, HEAD)))
