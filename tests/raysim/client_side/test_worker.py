"""A worker keeps parts of models that clients do not share, their data, and an evaluation that holds for all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from raysim.client_side import worker as worker_module
from raysim.client_side.drift import Moment
from raysim.config.registry import known, resolve
from raysim.config.run_config import RunConfig, build
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Message
from raysim.methods.fedavg import FedAvg
from raysim.running.simulation import run
from raysim.workloads.federated_data import Batch, distinct_input_specs
from raysim.workloads.metrics import EvaluationSums, evaluate
from tests.fingerprint import fingerprint
from tests.made_subgraphs import NODE_METHODS
from tests.small_runs import MakeConfig, worker_of
from tests.watch import stopped


@pytest.fixture
def base() -> dict[str, object]:
    """Graphs of three clients with different node features and classes."""
    return {
        "workload.name": "toy-graphs",
        "workload.clients": 3,
        "workload.graphs_per_client": 20,
        "model.name": "gin",
        "model.hidden": 8,
        "model.layers": 2,
        "training.batch_size": 8,
        "schedule.rounds": 2,
    }


def task(config: RunConfig, client: int, classes: int) -> ClientTask:
    return ClientTask(0, 1, client, 1, 0.05, config.training, classes)


@dataclass(frozen=True)
class Counts(FedAvg):
    """FedAvg whose clients keep a number, and which reports the entries that stay, before and after a client task."""

    def init_client(self, model: FlatModel) -> Any:
        return np.zeros(1, np.float32)

    def train(self, model: FlatModel, data: Any, message: Message, state: Any, task: ClientTask) -> Any:
        before = float(model.take_private().sum(dtype=np.float64))
        update, _ = super().train(model, data, message, None, task)
        after = float(model.take_private().sum(dtype=np.float64))
        metrics = {**update.metrics, "before": before, "after": after, "tasks": float(state[0]) + 1}
        return replace(update, metrics=metrics), state + 1


@pytest.mark.parametrize(("method", "states"), [("fedavg", (None, None)), (f"{__name__}:Counts", ([0], [1]))])
def test_the_rest_is_kept_from_client_task_to_client_task_and_deployed(
    make_config: MakeConfig, method: str, states: tuple[Any, Any]
) -> None:
    """Beside a state of the method, too."""
    config = make_config("kept", method__name=method)
    worker = worker_of(config)
    first = worker.first_state(0)
    assert first is not None
    message = Message(worker.model(0).take_shared())
    classes = worker.federation.input_spec(0).classes
    _, second = worker.train(task(config, 0, classes), message, first)
    assert second is not None and (first.method, second.method) == states
    assert second.private.shape == first.private.shape and np.abs(second.private - first.private).max() > 0
    np.testing.assert_array_equal(worker.deployed(0, message, second).take_private(), second.private)
    np.testing.assert_array_equal(worker.deployed(0, message, None).take_private(), first.private)
    # A client with other widths has a rest of another size.
    others = [worker.first_state(client) for client in range(3)]
    assert len({state.private.shape for state in others if state is not None}) > 1


def test_beside_a_state_of_the_method_the_rest_is_kept_too(make_config: MakeConfig) -> None:
    options = {"method__name": f"{__name__}:Counts", "schedule__rounds": 4, "workload__clients": 2}
    whole = run(make_config("whole", **options))
    config = make_config("parts", **options)
    resumed = run(config, resume=stopped(config, rounds=2))
    for result in (whole, resumed):
        for _, rows in result.clients.groupby("client"):
            assert rows["tasks"].tolist() == [1, 2, 3, 4]
            assert rows["before"].tolist()[1:] == rows["after"].tolist()[:-1]
            assert len(set(rows["after"])) == 4
    assert fingerprint(resumed.folder) == fingerprint(whole.folder)


def test_clients_that_are_alike_keep_nothing() -> None:
    config = build([{"workload.clients": 3, "model.name": "mlp", "engine.backend": "inline"}])
    worker = worker_of(config)
    assert distinct_input_specs(worker.federation) == (worker.federation.input_spec(0),)
    assert worker.first_state(0) is None


def of_several_tasks(method: str) -> bool:
    return not (resolve("method", method)().traits.same_task or method in {"centralized", "fedssp"})


@pytest.mark.slow
@pytest.mark.parametrize("method", [*filter(of_several_tasks, sorted({*known("method")} - {*NODE_METHODS}))])
def test_methods_work_unchanged_on_clients_of_different_width(make_config: MakeConfig, method: str) -> None:
    model = {"fedsage": "graphsage", "fedstar": "gin-star"}.get(method, "gin")
    result = run(make_config(method, method__name=method, model__name=model))
    last = result.rounds.iloc[-1]
    judged = result.clients[result.clients["round"] == last["round"]]["accuracy"]
    assert last["accuracy"] == last["client_accuracy_mean"] == pytest.approx(judged.mean())
    assert np.isfinite(last["validation_accuracy"])
    assert (last["bytes_up"] > 0) == (method != "local")


def test_validation_picks_a_round_for_the_summary(make_config: MakeConfig) -> None:
    result = run(make_config("summary", schedule__rounds=3))
    summary = json.loads((result.folder / "summary.json").read_text())
    best = int(result.rounds["validation_accuracy"].to_numpy().argmax())
    assert summary["validated_round"] == best + 1
    assert summary["validated_accuracy"] == pytest.approx(result.rounds["accuracy"][best])


@pytest.mark.parametrize(("model", "last"), [("cnn", True), ("mlp", False)])
def test_images_are_laid_out_as_the_model_reads_them(tmp_path: Path, model: str, last: bool) -> None:
    options = {"method.name": "fedavg", "workload.name": "synthetic", "workload.train_size": 40, "workload.clients": 2}
    worker = worker_of(build([options | {"model.name": model, "engine.backend": "inline", "output": str(tmp_path)}]))
    (batch,) = worker.data(0).train.batches(50)
    assert batch.x.shape[1] == 3
    assert batch.x.is_contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


def test_data_stay_cached_while_their_clients_are_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"method.name": "fedavg", "workload.name": "synthetic", "workload.train_size": 40, "workload.clients": 4}
    worker = worker_of(build([options | {"engine.backend": "inline", "output": str(tmp_path)}]))
    size = 4 * worker.federation.samples(0) * 3 * 32 * 32
    monkeypatch.setattr(worker_module, "CACHED_BYTES", 2 * size)

    def cached(number: int, *clients: int) -> dict[int, int]:
        """Which data are cached after these client tasks of a round, by their identity."""
        worker.at(Moment(number))
        for client in clients:
            worker.data(client)
        return {client: id(cached.data) for client, cached in worker._data.items()}

    first = cached(1, 0, 1, 2)
    assert list(first) == [0, 1, 2]  # more than there is room for, but all of this round
    assert cached(2, 2, 1) == {0: first[0], 2: first[2], 1: first[1]}
    third = cached(3, 3)
    assert sorted(third) == [1, 2, 3] and third[1] == first[1]  # 0 was last asked for two rounds ago
    assert sorted(cached(4, 0)) == [0, 3]
    monkeypatch.setattr(worker_module, "MOST_CACHED_BYTES", 2 * size)
    assert sorted(cached(4, 1, 2)) == [1, 2]
    assert worker._cached_bytes == 2 * size


@pytest.mark.parametrize(("method", "calls"), [("fedavg", 1), ("fedbn", 3)])
def test_one_model_is_judged_once_on_a_test_set_of_all_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, calls: int
) -> None:
    """Its figures are those of judging it for every client."""
    options = {"workload.name": "synthetic", "workload.train_size": 60, "workload.test_size": 10, "workload.clients": 3}
    options |= {"method.name": method, "workload.local_test": "global", "model.name": "mlp", "schedule.rounds": 2}
    looked_at: list[int] = []

    def counting(module: torch.nn.Module, batches: Iterator[Batch], *rest: Any) -> EvaluationSums:
        found = evaluate(module, batches, *rest)
        if found.samples == 10:  # no slice of the common test set for the server's model
            looked_at.append(found.samples)
        return found

    monkeypatch.setattr(worker_module, "evaluate", counting)

    def rounds(name: str) -> pd.DataFrame:
        folder = str(tmp_path / name)
        return run(build([options | {"engine.backend": "inline", "output": folder, "pictures": False}])).rounds

    once = rounds("once")
    assert len(looked_at) == 2 * calls
    monkeypatch.setattr(worker_module.Worker, "judged_once", worker_module.Worker.judged)
    names = ["accuracy", "client_accuracy_mean", "client_accuracy_std", "loss"]
    pd.testing.assert_frame_equal(once[names], rounds("each")[names], check_exact=True)
    assert len(looked_at) == 2 * calls + 6
