"""SCAFFOLD against plain loops over its equations, which share no code with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from raysim.cohort import Cohort
from raysim.config.run_config import build
from raysim.config.sections import Training
from raysim.errors import ConfigError
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Context, Update, Updates
from raysim.methods.scaffold import Scaffold, Server
from workloads.federated_data import Batch, ClientData

DATA = {
    0: [([1.0, -2.0], 0)],
    1: [([0.5, 1.0], 1), ([-1.0, 3.0], 0)],
    2: [([2.0, 1.0], 1), ([-3.0, 0.5], 0), ([1.0, 1.0], 0)],
}
"""Samples (x, label) of three clients."""
COHORTS = ((0, 2), (1, 2))
EPOCHS, RATE = 2, 0.25
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class InOrder:
    """A client's samples, one a mini-batch, in the same order in every epoch."""

    client: int

    def __len__(self) -> int:
        return len(DATA[self.client])

    def batches(self, batch_size: int, generator: torch.Generator | None = None) -> Any:
        for x, label in DATA[self.client]:
            yield Batch(torch.tensor([x]), torch.tensor([label]))


def gradient_of(weights: Vector, x: list[float], label: int) -> Vector:
    """∂/∂W of the cross-entropy of softmax(W x), W [2, 2] as a vector."""
    logits = weights.reshape(2, 2) @ np.array(x)
    probability = np.exp(logits) / np.exp(logits).sum()
    probability[label] -= 1.0
    return np.outer(probability, x).ravel()


def by_hand(start: Vector, momentum: float, decay: float, server_rate: float) -> tuple[Vector, Vector, list[Vector]]:
    """x, c and all c_i after the two rounds."""
    x, c, own = start, np.zeros(4), [np.zeros(4) for _ in DATA]
    for cohort in COHORTS:
        changes, steps = [], []
        for i in cohort:
            y, velocity, gradients = x.copy(), np.zeros(4), []
            for sample in DATA[i] * EPOCHS:
                gradients.append(gradient_of(y, *sample) + decay * y)
                velocity = momentum * velocity + gradients[-1] - own[i] + c
                y = y - RATE * velocity
            # Gradient k of K is in the velocity of every later step: its weight is 1 + μ + … + μ^(K-1-k).
            weights = [sum(momentum**j for j in range(len(gradients) - k)) for k in range(len(gradients))]
            renewed = np.average(gradients, axis=0, weights=weights)
            changes.append(y - x)
            steps.append(renewed - own[i])
            own[i] = renewed
        x = x + server_rate * (changes[0] + changes[1]) / 2
        c = c + (2 / 3) * (steps[0] + steps[1]) / 2
    return x, c, own


@pytest.mark.parametrize(
    ("momentum", "decay", "server_rate"), [(0.0, 0.0, 1.0), (0.0, 0.0, 0.5), (0.5, 0.0, 1.0), (0.5, 0.125, 1.5)]
)
def test_two_rounds_of_two_clients_out_of_three(momentum: float, decay: float, server_rate: float) -> None:
    method = Scaffold(server_rate=server_rate)
    module = torch.nn.Linear(2, 2, bias=False)
    module.weight.data = torch.tensor([[0.5, -1.0], [0.25, 0.75]])
    model = FlatModel(module, method.shared_names(module))
    training = Training(learning_rate=RATE, batch_size=1, momentum=momentum, weight_decay=decay)
    server, states = method.init_server(model), [method.init_client(model) for _ in DATA]
    expected, control, own = by_hand(server.parameters.astype(np.float64), momentum, decay, server_rate)
    for round, clients in enumerate(COHORTS, 1):
        samples = np.array([len(DATA[i]) for i in clients])
        cohort = Cohort(2, int(samples.sum()), 3, 6, 3)
        updates = []
        for i in clients:
            data = ClientData(i, str(i), InOrder(i), InOrder(i))
            task = ClientTask(0, round, i, EPOCHS, RATE, training, classes=2, cohort=cohort)
            before = states[i].copy()
            update, after = method.train(model, data, method.message(server, i), states[i], task)
            assert np.array_equal(states[i], before), "a client task may not write to what it was given"
            states[i] = after
            updates.append(update)
        context = Context(0, round, 2, RATE, model.shared_parameter_count, training, cohort)
        server = method.aggregate(server, Updates(clients, samples, tuple(updates)), context)
    assert (expected > 0).any() and (expected < 0).any()
    np.testing.assert_allclose(server.parameters, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(server.control, control, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(states, own, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(server.control, np.mean(own, axis=0), rtol=1e-5, atol=1e-6)


def test_a_server_step_with_buffers_and_a_client_that_failed() -> None:
    # Three of five clients were sampled, two updates arrived, of 10 and 90 samples: the mean change is (1, -2, 4).
    # η_g = 3/2: x = (10, 20) + 3/2 · (1, -2), and the buffer 30 + 4. c = (1, -1) + 1/5 · (5, 10).
    changes = ([3, -1, 6], [-1, -3, 2])
    controls = ([2, 15], [3, -5])
    updates = tuple(
        Update(np.array(change, np.float32), extra={"control": np.array(control, np.float32)})
        for change, control in zip(changes, controls, strict=True)
    )
    context = Context(0, 1, 3, 0.1, shared_parameter_count=2, cohort=Cohort(3, 150, 4, 300, 5))
    server = Server(np.array([10, 20, 30], np.float32), np.array([1, -1], np.float32))
    after = Scaffold(server_rate=1.5).aggregate(server, Updates((1, 3), np.array([10, 90]), updates), context)
    assert after.parameters == pytest.approx([11.5, 17.0, 34.0])
    assert after.control == pytest.approx([2.0, 1.0])
    assert context.report.round_columns["control_norm"] == pytest.approx(np.hypot(2.0, 1.0))


def test_an_optimizer_whose_steps_are_no_gradients_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"adam is not possible with method scaffold, which reads .* Allowed: sgd"):
        build([{"method.name": "scaffold", "training.optimizer": "adam"}])
