"""Ditto against plain loops over its equations, which share no code with it."""

from __future__ import annotations

import pytest

from raysim.methods.ditto import Ditto
from tests.raysim.methods.softmax_by_hand import DATA
from tests.raysim.methods.two_layers import (
    EPOCHS,
    NEWCOMER,
    RATE,
    START,
    Matrix,
    check,
    gradient,
    rounds_by_hand,
    steps,
)


@pytest.mark.parametrize("pull", [0.0, 0.5])
def test_two_rounds_of_two_clients_out_of_three(pull: float) -> None:
    def client_task(common: Matrix, own: Matrix | None, client: int) -> tuple[Matrix, Matrix]:
        v = common if own is None else own
        for sample in DATA[client] * EPOCHS:
            v = v - RATE * (gradient(v, sample) + pull * (v - common))
        return steps(common, client), v

    common, own = rounds_by_hand(START, client_task)
    check(Ditto(pull=pull), common, own | {NEWCOMER: common})
