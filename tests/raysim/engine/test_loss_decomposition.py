"""The loss decomposition on runs: against the union of the data, and that asking for it changes nothing else."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from aggregators.loss_decomposition import decompose
from aggregators.means import PairwiseSum
from raysim.cohort import Cohort
from raysim.config import registry
from raysim.config.registry import known, resolve
from raysim.config.run_config import RunConfig
from raysim.engine import schedule
from raysim.engine.client_task import kept_globals, seed_globals
from raysim.engine.worker import Worker, fixed_threads
from raysim.method import ClientTask, Context, Message, Update, Updates
from raysim.run_result import comparable
from raysim.simulation import run
from tests.small_runs import small_run, worker_of
from workloads.metrics import evaluate

COLUMNS = list(decompose(np.ones(1), np.ones((1, 1)), np.ones(1)))
METHODS = [name for name in known("method") if "workload.name" not in getattr(resolve("method", name), "defaults", {})]
"""Every registered method that runs on images as it is."""


def config(tmp_path: Path, method: str, every: int) -> RunConfig:
    options = {"model.name": "mlp", "workload.clients": 4, "workload.limit": 200, "schedule.rounds": 3}
    return small_run(tmp_path / f"{method}-{every}", options, method__name=method, evaluation__decompose_every=every)


def test_the_global_loss_is_that_on_the_union_and_nothing_else_changes(tmp_path: Path) -> None:
    wanted = config(tmp_path, "fedavg", 3)
    found, plain = run(wanted), run(config(tmp_path, "fedavg", 0))
    assert found.rounds[COLUMNS].notna().all(axis=1).tolist() == [False, False, True]
    assert comparable(found.rounds.drop(columns=COLUMNS)).equals(comparable(plain.rounds))
    worker = Worker(wanted, worker_of(wanted).federation.pooled())
    union = evaluate(found.model, worker.data(0).train.batches(500), 10)
    row = found.rounds.iloc[-1]
    assert row["global_loss"] == pytest.approx(union.loss, rel=1e-5)
    # Skewed clients: a local model fits its own data better than the others'.
    assert row["distribution_shift_loss"] > 0
    assert row["local_loss"] < row["global_loss"]


def whole_model(worker: Worker, client: int, sent: Message, before: Any, update: Update, after: Any) -> torch.nn.Module:
    """A client's trained model put together from what travels and what stays, as each method has it."""
    name, parameters = registry.public_name("method", worker.method), sent.parameters + update.delta
    extra = dict(sent.extra)
    if name == "ifca":  # the chosen one of several models was trained
        parameters = (sent.parameters, *sent.extra["others"])[after.method] + update.delta
        extra["others"] = [parameters]
    if name == "fedpac":
        extra["head"] = update.extra["head"]
    model = worker.deployed(client, Message(parameters, extra), after)
    if name == "fedcp":  # while it trained: the global head as received, and the context of the head as it came
        trained = copy.deepcopy(model.module.state_dict())
        start = worker.deployed(client, sent, before).module
        own = {key: value for key, value in trained.items() if not key.startswith(("global_head.", "context"))}
        start.load_state_dict(own, strict=False)
        return copy.deepcopy(start)
    return copy.deepcopy(model.module)


def mean_loss(module: torch.nn.Module, worker: Worker, client: int) -> float:
    module.eval()
    with torch.no_grad():
        (batch,) = worker.data(client).train.batches(10_000)
        return float(torch.nn.functional.cross_entropy(module(batch.x).double(), batch.y))


def by_hand(config: RunConfig) -> list[dict[str, float]]:
    """Every round's terms: each client trained here, one after another, and all n² losses evaluated here."""
    method, worker = config.method, worker_of(config)
    model = worker.model(0)
    shared_parameter_count = model.shared_parameter_count
    kept: dict[int, Any] = {}
    server = method.init_server(model)
    clients = range(worker.federation.clients)
    samples = np.array([worker.federation.samples(client) for client in clients])
    everyone = Cohort(len(clients), samples.sum(), len(clients), samples.sum(), len(clients))
    found = []
    for number in range(1, config.schedule.rounds + 1):
        updates, models = [], []
        for client in clients:
            message, before = method.message(server, client), kept.get(client)
            epochs, rate = schedule.planned_intervals(config)[number - 1], config.training.learning_rate
            task = ClientTask(config.seed, number, client, epochs, rate, config.training, 10, cohort=everyone)
            before = worker.first_state(client) if before is None else before
            with kept_globals():
                seed_globals(task)
                update, kept[client] = worker.train(task, message, before)
            if kept[client] is None:
                del kept[client]
            updates.append(update)
            models.append(whole_model(worker, client, message, before, update, kept.get(client)))
        rounds = config.schedule.rounds
        context = Context(config.seed, number, rounds, rate, shared_parameter_count, config.training, everyone)
        total = PairwiseSum()  # as the engine adds, to the bit: BatchNorm lets a difference grow
        for count, update in zip(samples, updates, strict=True):
            total.add(update.delta * np.float32(count))
        summed = total.total() if method.traits.weighted_mean else None
        server = method.aggregate(server, Updates(tuple(clients), samples, tuple(updates), summed), context)
        shares = samples / samples.sum()
        losses = np.array([[mean_loss(model, worker, judge) for judge in clients] for model in models])
        new = [
            mean_loss(worker.deployed(client, method.message(server, client), kept.get(client)).module, worker, client)
            for client in clients
        ]
        local, everywhere = shares @ np.diag(losses), shares @ losses @ shares
        found.append({"local": local, "shift": everywhere - local, "aggregation": shares @ new - everywhere})
    return found


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_judged_by_its_clients_whole_trained_models(tmp_path: Path, method: str) -> None:
    options: dict[str, Any] = {
        "method.name": method,
        "model.name": "mlp",
        "workload.clients": 3,
        "workload.limit": 150,
        "schedule.rounds": 2,
        "schedule.local_epochs": 3,
        "evaluation.decompose_every": 1,
    }
    if method == "fedbn":
        options |= {"model.name": "tests.raysim.user_code:WithBatchNorm", "training.last_batch": "keep"}
    wanted = small_run(tmp_path / method, options)
    rows = run(wanted).rounds
    with fixed_threads(wanted.engine.threads):
        found = by_hand(wanted)
    for number, expected in enumerate(found):
        row = rows.iloc[number]
        assert row["local_loss"] == pytest.approx(expected["local"], rel=1e-5)
        assert row["distribution_shift_term"] == pytest.approx(expected["shift"], rel=1e-4, abs=1e-6)
        assert row["aggregation_term"] == pytest.approx(expected["aggregation"], rel=1e-4, abs=1e-6)
