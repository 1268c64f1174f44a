"""FedPer, FedRep and FedBABU against plain loops over their equations, which share no code with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import nn

from raysim.client_side.sharing import running_statistics
from raysim.flat_model import FlatModel
from raysim.method import ClientTask
from raysim.methods._halves import load_head, take_head
from raysim.methods.fedbabu import FedBABU
from raysim.methods.fedper import FedPer
from raysim.methods.fedrep import FedRep
from raysim.workloads.models.classifier import Classifier
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


OWN_STATISTICS = {
    "model__name": "tests.raysim.user_code:WithBatchNorm",
    "training__batchnorm_statistics": "local",
    "training__last_batch": "merge",
}
"""A client's running means and variances stay with it."""


@pytest.mark.parametrize("tune_epochs", [0, 2])
def test_fedbabu_with_statistics_of_ones_own(make_local_training: Callable[..., Any], tune_epochs: int) -> None:
    """Three tasks beside the body's training alone, under H_0 and from the statistics of the last one on."""
    from raysim.training.local_sgd import train_epochs

    local = make_local_training(method__name="fedbabu", method__tune_epochs=tune_epochs, **OWN_STATISTICS)
    worker, method = local.worker, local.method
    model, data = worker.model(0), worker.data(0)
    first, server = model.take_private(), method.init_server(model)
    head, state, own = take_head(model), worker.first_state(0), first
    assert 0 < head.size < first.size
    for number in (1, 2, 3):
        task = ClientTask(0, number, 0, 1, 0.05, local.config.training, 10)
        update, state = worker.train(task, method.message(server, 0), state)
        model = worker.model(0)
        model.load_shared(server)
        model.load_private(own)
        train_epochs(model, data.train, task, trains=lambda name: name.startswith("body."))
        own = model.take_private()
        assert np.array_equal(update.delta, model.change_from(server))
        assert np.array_equal(state.private, own) and np.array_equal(own[: head.size], head)
        assert not np.array_equal(own, first)
        server = server + update.delta
    deployed = worker.deployed(0, method.message(server, 0), state)
    if tune_epochs == 0:
        assert np.array_equal(deployed.take_private(), own) and np.array_equal(deployed.take_shared(), server)
    else:
        tuned = np.concatenate([deployed.take_private(), deployed.take_shared()])
        assert np.array_equal(tuned, state.method)
        assert not np.array_equal(take_head(deployed), head)
        assert not np.array_equal(deployed.take_private()[head.size :], own[head.size :])
    newcomer = worker.deployed(1, method.message(server, 1), None)
    assert np.array_equal(newcomer.take_private(), first) and np.array_equal(newcomer.take_shared(), server)


@pytest.mark.parametrize("local", [False, True])
def test_the_head_has_no_statistics_where_they_stay_with_their_client(local: bool) -> None:
    head: Any = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    module = Classifier(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), head)
    shared = set(FedPer().shared_names(module)) - (running_statistics(module) if local else set())
    model = FlatModel(module, shared)
    private = model.take_private()
    assert private.size == (9 + 6) + 6 + (4 if local else 0)
    assert np.array_equal(take_head(model), private[:15] if local else private)
    new = np.arange(take_head(model).size, dtype=np.float32)
    load_head(model, new)
    assert np.array_equal(take_head(model), new)
    assert np.array_equal(model.take_private()[new.size :], private[new.size :])
