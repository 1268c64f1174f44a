"""Ditto against plain loops over its equations, which share no code with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from raysim.client_side.sharing import running_statistics
from raysim.flat_model import FlatModel
from raysim.method import ClientTask
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


def test_statistics_that_stay_with_the_client_are_those_of_its_own_model(
    make_local_training: Callable[..., Any],
) -> None:
    """They were those of both trainings. Without a pull the second one is training alone."""
    from raysim.training.local_sgd import Phase, train_epochs

    local = make_local_training(
        method__name="ditto",
        method__pull=0.0,
        model__name="tests.raysim.user_code:WithBatchNorm",
        training__batchnorm_statistics="local",
        training__last_batch="merge",
    )
    worker, method = local.worker, local.method
    model: FlatModel = worker.model(0)
    assert running_statistics(model.module)
    server, state = method.init_server(model), worker.first_state(0)
    for number in (1, 2):
        task = ClientTask(0, number, 0, 1, 0.05, local.config.training, 10)
        before = state
        update, state = worker.train(task, method.message(server, 0), state)
        model = worker.model(0)
        model.load_private(before.private)
        model.load_shared(before.method if number > 1 else server)
        train_epochs(model, worker.data(0).train, task, phase=Phase("shuffle personal"))
        assert np.array_equal(state.private, model.take_private())
        assert np.array_equal(state.method, model.take_shared())
        server = server + update.delta
