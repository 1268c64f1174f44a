"""Three clients, a body and a head of two weights by two, and the gradients of their loss worked out by hand."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from raysim.config.sections import Training
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Context, Update, Updates
from raysim.storage.pytree import leaves
from workloads.federated_data import Batch, ClientData

DATA = {
    0: [([1.0, -2.0], 0)],
    1: [([0.5, 1.0], 1), ([-1.0, 3.0], 0)],
    2: [([2.0, 1.0], 1), ([-3.0, 0.5], 0), ([1.0, 1.0], 0)],
}
"""Samples (x, label) of three clients."""
COHORTS = ((0, 2), (1, 2))
"""Of two rounds: their weights by samples are 1/4, 3/4 and 2/5, 3/5."""
WEIGHTS = ((0.25, 0.75), (0.4, 0.6))
EPOCHS, RATE = 2, 0.25
BODY = np.array([[0.5, -1.0], [0.25, 0.75]])
HEAD = np.array([[-0.5, 0.25], [1.0, -0.75]])
Matrix = NDArray[np.float64]


class TwoLayers(torch.nn.Module):
    """Logits H B x."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Linear(2, 2, bias=False)
        self.head = torch.nn.Linear(2, 2, bias=False)
        self.body.weight.data = torch.tensor(BODY, dtype=torch.float32)
        self.head.weight.data = torch.tensor(HEAD, dtype=torch.float32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.body(x))
        return logits


@dataclass(frozen=True)
class InOrder:
    """A client's samples, one a mini-batch, in the same order in every epoch."""

    client: int

    def __len__(self) -> int:
        return len(DATA[self.client])

    def batches(self, batch_size: int, generator: torch.Generator | None = None) -> Any:
        for x, label in DATA[self.client]:
            yield Batch(torch.tensor([x]), torch.tensor([label]))


def gradients(body: Matrix, head: Matrix, x: list[float], label: int) -> tuple[Matrix, Matrix]:
    """∂/∂B and ∂/∂H of the cross-entropy of softmax(H B x)."""
    features = body @ np.array(x)
    probability = np.exp(head @ features) / np.exp(head @ features).sum()
    probability[label] -= 1.0
    return np.outer(head.T @ probability, x), np.outer(probability, features)


def two_rounds(method: Any) -> tuple[Any, list[Any], FlatModel]:
    """The method's server state and all client states after the two rounds, and a model to deploy to."""
    module = TwoLayers()
    model = FlatModel(module, method.shared_names(module))
    training = Training(learning_rate=RATE, batch_size=1)
    server, states = method.init_server(model), [method.init_client(model) for _ in DATA]
    for round, clients in enumerate(COHORTS, 1):
        updates: list[Update] = []
        for i in clients:
            model.reset()
            before = copy.deepcopy(states[i])
            task = ClientTask(0, round, i, EPOCHS, RATE, training, classes=2)
            data = ClientData(i, str(i), InOrder(i), InOrder(i))
            update, after = method.train(model, data, method.message(server, i), states[i], task)
            now, then = ([np.asarray(value).tolist() for _, value in leaves(each)] for each in (states[i], before))
            assert now == then, "a client task may not write to what it was given"
            states[i] = after
            updates.append(update)
        samples = np.array([len(DATA[i]) for i in clients])
        context = Context(0, round, 2, RATE, model.shared_parameter_count, training)
        server = method.aggregate(server, Updates(clients, samples, tuple(updates)), context)
    return server, states, model


def deployed(method: Any, model: FlatModel, server: Any, client: int, state: Any) -> tuple[Matrix, Matrix]:
    """Body and head of the model that a client is judged by."""
    model.reset()
    method.deploy(model, method.message(server, client), state)
    module: Any = model.module
    return module.body.weight.detach().numpy().copy(), module.head.weight.detach().numpy().copy()
