"""FedALA against plain loops over its equations, which share no code with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from raysim.config.sections import Training
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Message
from raysim.methods.fedala import Client, FedALA
from tests.raysim.methods.by_hand import InOrder
from tests.raysim.methods.softmax_by_hand import COHORTS, DATA, data_of
from tests.raysim.methods.two_layers import RATE, START, WEIGHTS, Matrix, TwoLayers, check, gradient, steps

SHARE, PASSES, WEIGHT_RATE = 0.5, 3, 0.7


def learned(common: Matrix, own: Matrix, samples: list[Any]) -> Matrix:
    """W of the head."""
    weights = np.ones((2, 2))
    distance = common[1] - own[1]
    for sample in samples * PASSES:
        mixed = np.stack([common[0], own[1] + distance * weights])
        weights = np.clip(weights - WEIGHT_RATE * gradient(mixed, sample)[1] * distance, 0, 1)
    return weights


def test_two_rounds_of_two_clients_out_of_three() -> None:
    ended = {i: steps(START, i) for i in COHORTS[0]}
    common = WEIGHTS[0][0] * ended[0] + WEIGHTS[0][1] * ended[2]
    weights = learned(common, ended[2], DATA[2][:2])  # the first two of three are at least half
    assert ((weights > 0) & (weights < 1)).any()
    start = np.stack([common[0], ended[2][1] + (common[1] - ended[2][1]) * weights])
    ended |= {1: steps(common, 1), 2: steps(start, 2)}
    common = WEIGHTS[1][0] * ended[1] + WEIGHTS[1][1] * ended[2]
    judged = np.stack([common[0], ended[2][1] + (common[1] - ended[2][1]) * weights])
    method = FedALA(share=SHARE, weight_rate=WEIGHT_RATE, most_passes=PASSES)
    states = check(method, common, {0: common, 1: common, 2: judged})  # W is one before a client's second task
    assert states[0].weights.size == states[1].weights.size == 0
    np.testing.assert_allclose(states[2].weights.reshape(2, 2), weights, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("known", "passes"), [(False, 11), (True, 1)])
def test_the_first_weights_are_learned_until_the_loss_stands_still(known: bool, passes: int) -> None:
    method = FedALA(weight_rate=1e-9, most_passes=100)
    model = FlatModel(TwoLayers(), ["body.weight", "head.weight"])
    data = data_of(0)
    state = Client(model.take_shared() * np.float32(0.5), np.ones(4 * known, np.float32))
    task = ClientTask(0, 2, 0, 0, RATE, Training(learning_rate=RATE, batch_size=1), classes=2)
    method.train(model, data, Message(model.take_shared()), state, task)
    assert isinstance(data.train, InOrder) and data.train.passes == passes


@pytest.mark.parametrize(("layers", "expected"), [(1, [False] * 4 + [True] * 4), (2, [True] * 8), (9, [True] * 8)])
def test_the_last_layers(layers: int, expected: list[bool]) -> None:
    model = FlatModel(TwoLayers(), ["body.weight", "head.weight"])
    assert model.last_layers(layers).tolist() == expected
