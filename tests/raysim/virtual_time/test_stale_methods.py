"""What methods make of updates that start from earlier versions of the server's state, against plain float64 code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from raysim.config.run_config import RunConfig
from raysim.results.newest_state import newest_state
from raysim.results.result import load_result
from raysim.running.simulation import run
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


@pytest.mark.parametrize("mode", MODES)
def test_scaffold_s_control_is_the_mean_of_the_clients_in_every_mode(tmp_path: Path, mode: str) -> None:
    """x takes the changes by staleness, c ← c + (1/N) Σ (c_i⁺ − c_i) takes none of it: c = mean of all c_i."""
    config = small_run(tmp_path, BASE, method__name="scaffold", **MODES[mode])
    plain, clock = Softmax(config), clock_of(config)
    model, control, own = plain.start, np.zeros(plain.start.size), np.zeros((CLIENTS, plain.start.size))
    versions, stale = [(model, control)], 0
    for step in clock.steps:
        changes, news = [], []
        for flight in step.arrivals:
            (start, received), client = versions[flight.version], flight.client
            y = start
            for _ in range(EPOCHS):
                y = y - RATE * (plain.parts(y, client)[1] - own[client] + received)
            changes.append(weight_of(mode, step.number - 1 - flight.version, start, y, model))
            news.append(own[client] - received + (start - y) / (EPOCHS * RATE))
            stale += flight.version < step.number - 1
        for flight, new in zip(step.arrivals, news, strict=True):
            own[flight.client] = new
        model, control = model + np.mean(changes, axis=0), own.mean(axis=0)
        versions.append((model, control))
    assert (stale > 0) == (mode != "sync")
    found = last_state(config)
    np.testing.assert_allclose(found.server.control, control, atol=1e-6, rtol=0)
    np.testing.assert_allclose(found.server.parameters, model, atol=1e-6, rtol=0)


@pytest.mark.parametrize("mode", MODES)
def test_feddyn_s_correction_is_the_mean_of_the_clients_in_every_mode(tmp_path: Path, mode: str) -> None:
    """h ← h − (α/N) Σ (w_k − θ_τ), whatever weight the step gives the changes: h = mean over all N clients of g_k."""
    alpha = 0.1
    config = small_run(tmp_path, BASE, method__name="feddyn", method__alpha=alpha, **MODES[mode])
    plain, clock = Softmax(config), clock_of(config)
    model, own = plain.start, np.zeros((CLIENTS, plain.start.size))
    versions = [model]
    for step in clock.steps:
        changes = []
        for flight in step.arrivals:
            start, client = versions[flight.version], flight.client
            w = start
            for _ in range(EPOCHS):
                w = w - RATE * (plain.parts(w, client)[1] - own[client] + alpha * (w - start))
            changes.append(weight_of(mode, step.number - 1 - flight.version, start, w, model))
            own[client] = own[client] - alpha * (w - start)
        model = model + np.mean(changes, axis=0) - own.mean(axis=0) / alpha
        versions.append(model)
    found = last_state(config)
    np.testing.assert_allclose(found.server.correction, own.mean(axis=0), atol=1e-6, rtol=0)
    np.testing.assert_allclose(found.server.parameters, model, atol=2e-6, rtol=0)


def test_qfedavg_reads_lengths_before_they_are_weighted(tmp_path: Path) -> None:
    """Σ p_k F_k^q s_k Δ_k L / Σ p_k (q F_k^(q−1) ‖L Δ_k‖² + L F_k^q), L = 1/η when the client started."""
    decay = {"training__learning_rate_decay": 0.9}
    config = small_run(tmp_path, BASE, method__name="qfedavg", **MODES["buffered"], **decay)
    plain, clock = Softmax(config), clock_of(config)
    model, versions = plain.start, [plain.start]
    for step in clock.steps:
        above, below = np.zeros(model.size), 0.0
        for flight in step.arrivals:
            start, client, rate = versions[flight.version], flight.client, RATE * 0.9**flight.version
            loss, w = plain.parts(start, client)[0], start
            for _ in range(EPOCHS):
                w = w - rate * plain.parts(w, client)[1]
            samples, weight = len(plain.samples[client][1]), (step.number - flight.version) ** -0.5
            above += samples * loss * weight * (w - start) / rate
            below += samples * (float(np.square((w - start) / rate).sum()) + loss / rate)
        model = model + above / below
        versions.append(model)
    np.testing.assert_allclose(last_state(config).server, model, atol=1e-6, rtol=0)


def weight_of(mode: str, staleness: int, start: Doubles, trained: Doubles, current: Doubles) -> Doubles:
    """What a step adds to the current model for one client: α s (θ_τ + Δ − θ) of FedAsync, else s Δ."""
    weight = 1 / np.sqrt(1 + staleness)
    change: Doubles = MIXING * weight * (trained - current) if mode == "async" else weight * (trained - start)
    return change


@pytest.mark.parametrize("weights", ["samples", "uniform"])
@pytest.mark.parametrize("rule", ["none", "norm-bound"])
def test_fedbuff_weighs_a_buffer_by_samples_or_alike(tmp_path: Path, weights: str, rule: str) -> None:
    """θ ← θ + Σ_i p_i s(τ_i) Δ_i over the K = 3 of a buffer, p_i = m_i / Σ m_j or, as in print, 1 / K."""
    options: dict[str, Any] = {"timing__buffer_weights": weights, "defense__rule": rule}
    options |= {"defense__radius": 1e6} if rule == "norm-bound" else {}  # which cuts nothing
    config = small_run(tmp_path, BASE, **MODES["buffered"], **options)
    plain, clock = Softmax(config), clock_of(config)
    model, versions = plain.start, [plain.start]
    for step in clock.steps:
        counts = [len(plain.samples[flight.client][1]) if weights == "samples" else 1 for flight in step.arrivals]
        changes = []
        for flight in step.arrivals:
            start = versions[flight.version]
            trained = plain.trained(start, flight.client)
            changes.append(weight_of("buffered", step.number - 1 - flight.version, start, trained, model))
        model = model + np.average(changes, axis=0, weights=counts)
        versions.append(model)
    np.testing.assert_allclose(last_state(config).server, model, atol=1e-6, rtol=0)
    if rule == "none":
        shares = load_result(tmp_path).clients.groupby("round")["weight"]
        assert shares.sum().tolist() == pytest.approx([1.0] * STEPS)
        assert (shares.nunique() == 1).all() == (weights == "uniform")


def test_fedasync_mixes_the_client_s_model_with_the_global_one(tmp_path: Path) -> None:
    """θ ← (1 − α s(τ)) θ + α s(τ) θ̃, where θ̃ was trained from θ_τ; of updates that the engine adds up itself."""
    config = small_run(tmp_path, BASE, **MODES["async"])
    plain, model = Softmax(config), Softmax(config).start
    versions = [model]
    for step in clock_of(config).steps:
        (flight,) = step.arrivals
        share = MIXING * (step.number - flight.version) ** -0.5
        model = (1 - share) * model + share * plain.trained(versions[flight.version], flight.client)
        versions.append(model)
    np.testing.assert_allclose(last_state(config).server, model, atol=1e-6, rtol=0)
