"""Three clients with a few samples, and the gradient of softmax regression on them, in plain NumPy."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from raysim.cohort import Cohort
from raysim.config.sections import Training
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Context, Updates
from raysim.workloads.federated_data import Batch, ClientData
from tests.raysim.methods.by_hand import InOrder
from tests.state_equality import equal

DATA = {
    0: [([1.0, -2.0], 0)],
    1: [([0.5, 1.0], 1), ([-1.0, 3.0], 0)],
    2: [([2.0, 1.0], 1), ([-3.0, 0.5], 0), ([1.0, 1.0], 0)],
}
"""Samples (x, label) of three clients."""
COHORTS = ((0, 2), (1, 2))
"""Of two rounds: their weights by samples are 1/4, 3/4 and 2/5, 3/5."""
Vector = NDArray[np.float64]


def data_of(client: int) -> ClientData:
    """A client's samples, one a mini-batch."""
    samples = InOrder(*(Batch(torch.tensor([x]), torch.tensor([label])) for x, label in DATA[client]))
    return ClientData(client, str(client), samples, samples)


def gradient_of(weights: Vector, x: list[float], label: int) -> Vector:
    """∂/∂W of the cross-entropy of softmax(W x), W [2, 2] as a vector."""
    logits = weights.reshape(2, 2) @ np.array(x)
    probability = np.exp(logits) / np.exp(logits).sum()
    probability[label] -= 1.0
    return np.outer(probability, x).ravel()


def loss_of(weights: Vector, client: int) -> float:
    """The mean cross-entropy of softmax(W x) over a client's samples."""
    logits = [weights.reshape(2, 2) @ np.array(x) for x, _ in DATA[client]]
    pairs = zip(logits, DATA[client], strict=True)
    return float(np.mean([np.log(np.exp(found).sum()) - found[label] for found, (_, label) in pairs]))


def start() -> FlatModel:
    """W [2, 2], all of it shared."""
    module = torch.nn.Linear(2, 2, bias=False)
    module.weight.data = torch.tensor([[0.5, -1.0], [0.25, 0.75]])
    return FlatModel(module, {"weight"})


def play(
    method: Any, cohorts: Any, epochs: int, training: Training, model: FlatModel | None = None
) -> tuple[Any, list[Any]]:
    """The server's state and all clients' after a round with each cohort; one sample is a mini-batch."""
    model, rate = model or start(), training.learning_rate
    server, states = method.init_server(model), [method.init_client(model) for _ in DATA]
    for round, clients in enumerate(cohorts, 1):
        samples = np.array([len(DATA[i]) for i in clients])
        cohort = Cohort(len(clients), int(samples.sum()), 3, 6, 3)
        updates = []
        for i in clients:
            model.reset()
            task = ClientTask(0, round, i, epochs, rate, training, classes=2, cohort=cohort)
            before = copy.deepcopy(states[i])
            update, after = method.train(model, data_of(i), method.message(server, i), states[i], task)
            assert equal(states[i], before), "a client task may not write to what it was given"
            states[i] = after
            updates.append(update)
        context = Context(0, round, 2, rate, model.shared_parameter_count, training, cohort)
        server = method.aggregate(server, Updates(clients, samples, tuple(updates)), context)
    return server, states
