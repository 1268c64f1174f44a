"""Per-FedAvg against plain loops over its equations, which share no code with it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from raysim.methods.perfedavg import PerFedAvg
from tests.raysim.methods.softmax_by_hand import DATA
from tests.raysim.methods.two_layers import EPOCHS, NEWCOMER, RATE, START, Matrix, check, gradient, rounds_by_hand

ALPHA, DELTA = 0.3, 0.01


def meta_steps(w: Matrix, client: int, variant: str) -> Matrix:
    """w after a client's steps; D, D' and D'' of a step are the same sample here."""
    for sample in DATA[client] * EPOCHS:
        g = v = gradient(w - ALPHA * gradient(w, sample), sample)
        if variant == "hf":
            g = v - ALPHA * (gradient(w + DELTA * v, sample) - gradient(w - DELTA * v, sample)) / (2 * DELTA)
        w = w - RATE * g
    return w


@pytest.mark.parametrize("variant", ["fo", "hf"])
def test_two_rounds_of_two_clients_out_of_three(variant: Literal["fo", "hf"]) -> None:
    def client_task(common: Matrix, own: Matrix | None, client: int) -> tuple[Matrix, Matrix]:
        adapted = common - ALPHA * np.mean([gradient(common, sample) for sample in DATA[client]], axis=0)
        return meta_steps(common, client, variant), adapted

    common, own = rounds_by_hand(START, client_task)
    method = PerFedAvg(variant, adaptation_rate=ALPHA, difference=DELTA)
    check(method, common, own | {NEWCOMER: common}, tolerance=2e-4)


def test_the_two_variants_differ() -> None:
    assert np.abs(meta_steps(START, 2, "hf") - meta_steps(START, 2, "fo")).max() > 1e-3
