"""A body and a head of two weights by two, the gradients of their loss worked out by hand, and two rounds with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from raysim.config.sections import Training
from raysim.flat_model import FlatModel
from tests.raysim.methods.softmax_by_hand import COHORTS, DATA, play

WEIGHTS = ((0.25, 0.75), (0.4, 0.6))
"""Of the clients of COHORTS, by samples."""
EPOCHS, RATE = 2, 0.25
BODY = np.array([[0.5, -1.0], [0.25, 0.75]])
HEAD = np.array([[-0.5, 0.25], [1.0, -0.75]])
START = np.stack([BODY, HEAD])
NEWCOMER = 3
"""A client that was in no cohort."""
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


def gradient(model: Matrix, sample: tuple[list[float], int]) -> Matrix:
    """∂/∂B and ∂/∂H of the cross-entropy of softmax(H B x) [2, 2, 2], as the model."""
    (body, head), (x, label) = model, sample
    features = body @ np.array(x)
    probability = np.exp(head @ features) / np.exp(head @ features).sum()
    probability[label] -= 1.0
    return np.stack([np.outer(head.T @ probability, x), np.outer(probability, features)])


def steps(model: Matrix, client: int) -> Matrix:
    """The model after a client's plain training."""
    for sample in DATA[client] * EPOCHS:
        model = model - RATE * gradient(model, sample)
    return model


def rounds_by_hand(
    common: Matrix, client_task: Callable[[Matrix, Any, int], tuple[Matrix, Any]]
) -> tuple[Matrix, dict[int, Any]]:
    """What the server averages, after the two rounds, and what each client that took part keeps of its own.

    Args:
        common: what the server has at first.
        client_task: from what the server has, what client i kept (None: nothing yet) and i to the next of both.
    """
    own: dict[int, Any] = {}
    for cohort, weights in zip(COHORTS, WEIGHTS, strict=True):
        results = [client_task(common, own.get(i), i) for i in cohort]
        common = weights[0] * results[0][0] + weights[1] * results[1][0]
        own |= {i: result[1] for i, result in zip(cohort, results, strict=True)}
    assert (common > 0).any() and (common < 0).any()
    return common, own


def two_rounds(method: Any) -> tuple[Any, list[Any], FlatModel]:
    """The method's server state and all client states after the two rounds, and a model to deploy to."""
    module = method.extend(TwoLayers())
    model = FlatModel(module, method.shared_names(module))
    server, states = play(method, COHORTS, EPOCHS, Training(learning_rate=RATE, batch_size=1), model)
    return server, states, model


def check(method: Any, common: Matrix, judged: Mapping[int, Any], tolerance: float = 1e-5) -> list[Any]:
    """Two rounds of the method end with these shared values, and with these models that clients are judged by.

    Returns:
        All client states.
    """
    server, states, model = two_rounds(method)
    np.testing.assert_allclose(server, common.ravel(), rtol=tolerance, atol=tolerance / 10)
    for client, expected in judged.items():
        model.reset()
        state = method.init_client(model) if client == NEWCOMER else states[client]
        method.deploy(model, method.message(server, client), state)
        module: Any = model.module
        found = [part.weight.detach().numpy() for part in (module.body, module.head)]
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance / 10, err_msg=f"client {client}")
    return states
