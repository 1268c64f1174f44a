"""What methods make of updates that start from earlier versions of the server's state, against plain float64 code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from raysim.config.run_config import RunConfig
from raysim.engine.checkpointing import newest_state
from raysim.simulation import run
from raysim.storage.run_folder import RunFolder
from raysim.timeline import clock_of
from tests.small_runs import small_run, worker_of

CLIENTS, STEPS, EPOCHS, RATE, MIXING = 7, 20, 2, 0.5, 0.6
BASE = {
    "model.name": "logistic",
    "workload.clients": CLIENTS,
    "workload.limit": 200,
    "schedule.rounds": STEPS,
    "schedule.local_epochs": EPOCHS,
    "training.batch_size": 1000,
    "training.learning_rate": RATE,
    "training.learning_rate_decay": 1.0,
    "training.momentum": 0.0,
    "training.weight_decay": 0.0,
    "evaluation.every": STEPS,
    "devices.preset": "phones",
}
"""An epoch is a step of plain gradient descent on all of a client's samples."""
MODES: dict[str, dict[str, Any]] = {
    "sync": {"schedule__sampling_rate": 0.6},
    "carry": {"timing__mode": "quorum", "timing__quorum": 0.5, "timing__late": "carry"},
    "async": {"timing__mode": "async", "timing__concurrency": 5, "timing__mixing": MIXING},
    "buffered": {"timing__mode": "buffered", "timing__buffer": 3, "timing__concurrency": 5},
}
Doubles = NDArray[np.float64]


class Softmax:
    """Softmax regression on the clients' samples, W [classes, inputs] and b [classes] as one float64 vector."""

    def __init__(self, config: RunConfig) -> None:
        worker = worker_of(config)
        self.start = worker.model(0).take_shared().astype(np.float64)
        self.samples = []
        for client in range(CLIENTS):
            batch = next(iter(worker.federation.client(client, "cpu").train.batches(10**6)))
            self.samples.append((batch.x.flatten(1).double().numpy(), batch.y.numpy()))

    def parts(self, model: Doubles, client: int) -> tuple[float, Doubles]:
        """Mean cross-entropy, and its gradient."""
        x, y = self.samples[client]
        weights, bias = np.split(model, [10 * x.shape[1]])
        logits = x @ weights.reshape(10, -1).T + bias
        logits -= logits.max(axis=1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        errors = (np.exp(logs) - np.eye(10)[y]) / len(y)
        return float(-logs[np.arange(len(y)), y].mean()), np.concatenate([(errors.T @ x).ravel(), errors.sum(axis=0)])

    def trained(self, model: Doubles, client: int) -> Doubles:
        for _ in range(EPOCHS):
            model = model - RATE * self.parts(model, client)[1]
        return model


def last_state(config: RunConfig) -> Any:
    """The server's state and the clients' after a run."""
    return newest_state(RunFolder(run(config).folder), worker_of(config))


@pytest.mark.parametrize("count", [3, 5])
def test_ifca_mixes_a_client_s_model_with_the_one_that_it_chose(tmp_path: Path, count: int) -> None:
    """FedAsync on model j: θ_j ← (1 − α s(τ)) θ_j + α s(τ) θ̃, where θ̃ was trained from θ_j of τ steps back."""
    config = small_run(tmp_path, BASE, method__name="ifca", method__clusters=count, **MODES["async"])
    plain, worker, clock = Softmax(config), worker_of(config), clock_of(config)
    models = [values.astype(np.float64) for values in worker.method.init_server(worker.model(0)).models]
    versions, chosen, stale = [list(models)], set(), 0
    for step in clock.steps:
        (flight,) = step.arrivals
        started = versions[flight.version]
        own = int(np.argmin([plain.parts(model, flight.client)[0] for model in started]))
        share = MIXING * (step.number - flight.version) ** -0.5
        models[own] = (1 - share) * models[own] + share * plain.trained(started[own], flight.client)
        versions.append(list(models))
        chosen.add(own)
        stale += flight.version < step.number - 1
    assert len(chosen) > 1 and stale > STEPS / 2
    found = last_state(config).server.models
    assert max(np.abs(a - b).max() for a, b in zip(found, models, strict=True)) < 1e-6
