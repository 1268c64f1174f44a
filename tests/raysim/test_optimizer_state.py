"""Where an optimizer's moments live: in a client task (fresh), with the client (kept) or in a mini-batch (batch)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from raysim.client_side import fedsgd
from raysim.client_side.worker import ClientState
from raysim.config.sections import Training
from raysim.flat_model import FlatModel, all_names
from raysim.method import ClientTask, Message
from raysim.running.simulation import run
from raysim.training.local_sgd import Phase, train_epochs
from tests.fingerprint import fingerprint
from tests.raysim.training.test_local_sgd import points, squared_error
from tests.raysim.training.test_optimizers import torchs_own
from tests.small_runs import MakeConfig, worker_of
from tests.watch import stopped

WITH_STATE = [
    Training(learning_rate=0.1, momentum=0.9, weight_decay=0.1),
    Training(learning_rate=0.1, optimizer="adam", weight_decay=0.1),
    Training(learning_rate=0.1, optimizer="adamw", weight_decay=0.1),
]
POINTS = points((1.0, 3.0), (2.0, 1.0), (-1.0, 0.5))


@pytest.fixture
def base() -> dict[str, object]:
    """Four rounds of Adam with kept moments."""
    return {
        "workload.clients": 3,
        "workload.limit": 300,
        "model.name": "mlp",
        "training.optimizer": "adam",
        "training.learning_rate": 0.003,
        "training.optimizer_state": "kept",
        "schedule.rounds": 4,
        "schedule.local_epochs": 1,
    }


def line() -> FlatModel:
    module = torch.nn.Linear(1, 1, bias=False)
    module.weight.data.fill_(1.0)
    return FlatModel(module, all_names(module))


def plain_loop(training: Training, tasks: int, anew: str) -> float:
    """torch's own optimizer over the points, two epochs a task, and made anew in every task, batch or never."""
    module = torch.nn.Linear(1, 1, bias=False)
    module.weight.data.fill_(1.0)
    optimizer = torchs_own(list(module.parameters()), training)
    for _ in range(tasks):
        if anew == "task":
            optimizer = torchs_own(list(module.parameters()), training)
        for batch in [*POINTS.batches(1)] * 2:
            if anew == "batch":
                optimizer = torchs_own(list(module.parameters()), training)
            optimizer.zero_grad()
            squared_error(module, batch).backward()
            optimizer.step()
    return module.weight.item()


@pytest.mark.parametrize("training", WITH_STATE, ids=lambda training: training.optimizer)
@pytest.mark.parametrize(("state", "anew"), [("fresh", "task"), ("kept", "never"), ("batch", "batch")])
def test_three_tasks_are_those_of_torchs_own_optimizer(training: Training, state: Any, anew: str) -> None:
    found = line()
    for number in range(3):
        task = ClientTask(0, number + 1, 0, 2, 0.1, replace(training, optimizer_state=state))
        kept, values = found.optimizer_states, found.buffer.clone()
        found.reset()  # as the worker does before every task
        found.buffer.copy_(values)
        found.optimizer_states = kept
        train_epochs(found, POINTS, task, squared_error)
    assert float(found.buffer) == pytest.approx(plain_loop(training, 3, anew), abs=1e-6)
    assert bool(found.optimizer_states) == (state == "kept")
    others = {plain_loop(training, 3, other) for other in {"task", "never", "batch"} - {anew}}
    assert all(abs(float(found.buffer) - other) > 1e-4 for other in others)


def test_a_reset_model_has_no_moments() -> None:
    model = line()
    model.optimizer_states["shuffle"] = {}
    model.reset()
    assert model.optimizer_states == {}


def test_each_phase_and_each_set_of_parameters_has_moments_of_its_own() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Linear(2, 1))
    model = FlatModel(module, all_names(module))
    task = ClientTask(0, 1, 0, 1, 0.1, Training(optimizer="adam", optimizer_state="kept"))
    first, second = (lambda name: name.startswith("0.")), (lambda name: name.startswith("1."))
    train_epochs(model, POINTS, task, squared_error, trains=first)
    train_epochs(model, POINTS, task, squared_error, trains=second)
    train_epochs(model, POINTS, task, squared_error, trains=second, phase=Phase("again"))
    sizes = {name: (len(state["mean"]), state["steps"]) for name, state in model.optimizer_states.items()}
    assert sizes == {"shuffle 0:4": (4, 3), "shuffle 4:7": (3, 3), "again 4:7": (3, 3)}
    train_epochs(model, POINTS, task, squared_error, trains=first)
    assert model.optimizer_states["shuffle 0:4"]["steps"] == 6 and len(model.optimizer_states) == 3


def test_the_worker_hands_moments_on_and_takes_none_over_from_another_client(make_config: MakeConfig) -> None:
    config = make_config("worker")
    worker = worker_of(config)
    message = Message(worker.model(0).take_shared())

    def task(client: int, state: ClientState | None) -> ClientState:
        _, new = worker.train(ClientTask(0, 1, client, 1, 0.003, config.training, 10), message, state)
        assert new is not None
        return new

    first = worker.first_state(0)
    assert first == ClientState()
    one = task(0, first)
    two, other = task(0, one), task(1, worker.first_state(1))
    ((phase, moments),) = one.optimizer.items()
    assert two.optimizer[phase]["steps"] == 2 * moments["steps"] > 0
    assert other.optimizer[phase]["steps"] == moments["steps"]
    assert np.abs(moments["mean"]).max() > 0
    size = worker.state_bytes(0)
    assert sum(value.nbytes for value in moments.values() if isinstance(value, np.ndarray)) == size


RUNS: dict[str, dict[str, Any]] = {
    "adam": {},
    "adamw": {"training__optimizer": "adamw"},
    "momentum": {"training__optimizer": "sgd", "training__momentum": 0.9},
    "two phases": {"method__name": "fedpac"},
    "a state of the method": {"method__name": "local"},
    "clients of different tasks": {
        "workload__name": "toy-graphs",
        "workload__limit": None,
        "model__name": "gin",
        "workload__clients": 2,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("case", RUNS)
def test_a_resumed_run_has_the_same_bits(make_config: MakeConfig, case: str) -> None:
    expected = fingerprint(run(make_config("whole", **RUNS[case])).folder)
    config = make_config("stopped", **RUNS[case])
    assert fingerprint(run(config, resume=stopped(config, rounds=2)).folder) == expected
    if case == "momentum":  # which would only be different arithmetic, were it never kept
        fresh = make_config("fresh", **RUNS[case], training__optimizer_state="fresh")
        assert fingerprint(run(fresh).folder)["rounds"] != expected["rounds"]


def test_clients_with_moments_are_not_merged(make_config: MakeConfig) -> None:
    options = {
        "workload__clients": 66,
        "workload__min_samples": 2,
        "workload__limit": 1400,
        "training__optimizer": "sgd",
        "training__momentum": 0.9,
    }
    for state, merged in (("fresh", True), ("kept", False)):
        config = make_config(state, **options, training__optimizer_state=state)
        worker = worker_of(config)
        assert fedsgd.possible(worker) is merged
