"""Clients that are judged once more after they have trained the global model on their own data."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from raysim import seeds
from raysim.client_side.fine_tuning import FineTuning
from raysim.errors import ConfigError
from raysim.evaluate import evaluate_again
from raysim.method import ClientTask
from raysim.results.result import RunResult
from raysim.running.simulation import run
from raysim.workloads.federated_data import ClientData
from raysim.workloads.metrics import EvaluationSums, evaluate
from tests.fingerprint import fingerprint
from tests.small_runs import LOGISTIC, small_run, worker_of

RATE, DECAY = 0.2, 0.5


def config(folder: Path, **options: object) -> Any:
    usual = {"evaluation__fine_tune": 2, "training__learning_rate": RATE, "training__learning_rate_decay": DECAY}
    return small_run(folder / "run", LOGISTIC, **{**usual, **options})


def tuned_by_hand(model: torch.nn.Module, data: ClientData, epochs: int, rate: float) -> EvaluationSums:
    """A client's test set under a copy of the global model after plain gradient descent on its training data."""
    own = copy.deepcopy(model)
    optimizer = torch.optim.SGD(own.parameters(), rate)
    shuffle = seeds.torch_generator(0, "fine-tune", 3, data.client)
    for _ in range(epochs):
        for batch in data.train.batches(50, shuffle):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(own(batch.x), batch.y).backward()
            optimizer.step()
    return evaluate(own, data.test.batches(500), 10)


@pytest.mark.parametrize("method", ["fedavg", "fedadam"])
def test_columns_are_those_of_a_plain_loop_over_each_clients_data(tmp_path: Path, method: str) -> None:
    wanted = config(tmp_path, method__name=method, training__batch_size=50)
    result = run(wanted)
    federation, last = worker_of(wanted).federation, result.rounds.iloc[-1]
    clients = [federation.client(client, "cpu") for client in range(4)]
    found = [tuned_by_hand(result.model, data, 2, RATE * DECAY**2) for data in clients]  # of round 3
    accuracies = [sums.accuracy for sums in found]
    assert last["tuned_client_accuracy_mean"] == pytest.approx(np.mean(accuracies))
    assert last["tuned_client_accuracy_std"] == pytest.approx(np.std(accuracies))
    assert last["tuned_client_accuracy_worst_decile"] == pytest.approx(min(accuracies))
    assert last["tuned_loss"] == pytest.approx(np.mean([sums.loss for sums in found]), rel=1e-5)
    before = [evaluate(result.model, data.test.batches(500), 10) for data in clients]
    assert last["client_accuracy_mean"] == pytest.approx(np.mean([sums.accuracy for sums in before]))
    assert last["tuned_loss"] != pytest.approx(np.mean([sums.loss for sums in before]), rel=1e-2)
    rows = result.clients.query("round == 3").set_index("client")
    assert rows["tuned_accuracy"].tolist() == pytest.approx(accuracies)
    assert rows["tuned_loss"].tolist() == pytest.approx([sums.loss for sums in found], rel=1e-5)


def test_a_kept_optimizer_goes_on_so_that_the_next_task_is_judged(tmp_path: Path) -> None:
    """With one epoch of one mini-batch nothing is drawn: tuned after round 2, clients have the losses of round 3."""
    options: dict[str, Any] = {"evaluation__fine_tune": 1, "training__batch_size": 1000, "training__momentum": 0.9}
    options |= {"schedule__local_epochs": 1, "training__learning_rate_decay": 1.0, "schedule__rounds": 2}
    losses = {}
    for memory in ("kept", "fresh"):
        wanted = config(tmp_path / memory, training__optimizer_state=memory, evaluation__every=1, **options)
        result = run(wanted)
        worker = worker_of(wanted)
        rows = result.clients.query("round == 2").set_index("client")
        velocity = training_velocity(worker, result, tmp_path / memory) if memory == "kept" else 0.0
        losses[memory] = (rows["tuned_loss"][0], after_one_step(result, worker.data(0), velocity))
    assert losses["kept"][0] == pytest.approx(losses["kept"][1], rel=1e-5)
    assert losses["fresh"][0] == pytest.approx(losses["fresh"][1], rel=1e-5)
    assert losses["kept"][0] != pytest.approx(losses["fresh"][0], rel=1e-3)


def training_velocity(worker: Any, result: RunResult, folder: Path) -> Any:
    """The momentum that client 0 has kept, over all parameters in their order."""
    from raysim.results.newest_state import newest_state
    from raysim.storage.run_folder import RunFolder

    (kept,) = newest_state(RunFolder(result.folder), worker).clients[0].optimizer.values()
    return torch.from_numpy(np.array(kept["velocity"]))


def after_one_step(result: RunResult, data: ClientData, velocity: Any) -> float:
    """The loss on client 0's test set after the global model's step r (0.9 v + g) on all its training samples."""
    model = copy.deepcopy(result.model)
    (batch,) = data.train.batches(1000)
    torch.nn.functional.cross_entropy(model(batch.x), batch.y).backward()
    gradient = torch.cat([each.grad.flatten() for each in model.parameters()])  # type: ignore[union-attr]
    moved = torch.nn.utils.parameters_to_vector(model.parameters()) - RATE * (0.9 * velocity + gradient)
    torch.nn.utils.vector_to_parameters(moved.detach(), model.parameters())
    return evaluate(model, data.test.batches(500), 10).loss


def without_tuned(result: RunResult) -> dict[str, Any]:
    """All that a run computed but for the columns after fine-tuning, and digests that they are part of."""
    found = fingerprint(result.folder)
    rest = {name: frame[[c for c in frame if not str(c).startswith(("tuned_", "seconds"))]] for name, frame in (
        ("rounds", result.rounds), ("clients", result.clients))}  # fmt: skip
    times = ["clients_per_second", "slot_utilization", "started"]
    digests = [{key: line[key] for key in line if key not in ("rounds", "clients")} for line in found["proof"]]
    tables = {name: frame.drop(columns=times, errors="ignore").to_csv() for name, frame in rest.items()}
    return found | tables | {"proof": digests}


def test_it_changes_nothing_else_of_a_run(tmp_path: Path) -> None:
    options = {"model__name": "mobilenet", "model__width": 0.1, "training__momentum": 0.9, "schedule__rounds": 2}
    options |= {"training__optimizer_state": "kept"}  # fine-tuning goes on from it, and leaves it as it was
    options |= {"workload__clients": 2, "workload__limit": 100}
    plain = run(config(tmp_path / "plain", evaluation__fine_tune=0, **options))
    tuned = run(config(tmp_path / "tuned", **options))
    assert not [name for name in plain.rounds if str(name).startswith("tuned_")]
    assert without_tuned(plain) == without_tuned(tuned)


def test_it_can_be_repeated_from_the_folder(tmp_path: Path) -> None:
    options = {"model__name": "mobilenet", "model__width": 0.1, "schedule__rounds": 1}
    options |= {"training__batch_size": 19, "training__learning_rate": 0.02}  # last mini-batches of a few are merged
    result = run(config(tmp_path, **options))
    assert result.settings is not None
    _, again = evaluate_again(result.settings, result.folder)
    assert again["tuned_loss"] == result.rounds["tuned_loss"].iloc[-1]


def test_who_takes_no_part_is_neither_tuned_nor_counted(tmp_path: Path) -> None:
    fewer = run(config(tmp_path, schedule__unseen_clients=2)).clients
    assert sorted(set(fewer["client"])) == [0, 1]
    worker = worker_of(config(tmp_path))
    task = ClientTask(0, 1, 0, 2, RATE, worker.config.training)
    model = worker.model(3)
    before = model.buffer.clone()
    samples = worker.data(3).train
    FineTuning(task, clients=3).tune(worker, model, 3, samples, {})
    assert torch.equal(model.buffer, before)
    FineTuning(task, clients=4).tune(worker, model, 3, samples, {})
    assert not torch.equal(model.buffer, before)


OPTIONS: dict[str, Any] = {
    "rounds": 1,
    "engine.backend": "inline",
    "evaluation.fine_tune": 2,
    "evaluation.each_client": True,
}


def given(sizes: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Clients with these numbers of samples, of two classes."""
    draws = np.random.default_rng(0)
    return [(draws.normal(size=(size, 4)).astype(np.float32), np.arange(size) % 2) for size in sizes]


def test_a_client_without_a_test_sample_is_neither_tuned_nor_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned: list[int] = []
    tune = FineTuning.tune
    monkeypatch.setattr(
        FineTuning,
        "tune",
        lambda *words: (tuned.append(words[3]), tune(*words))[1],  # type: ignore[func-returns-value]
    )
    model, clients = torch.nn.Linear(4, 2), given([1, 30, 1, 20])
    last = run(model=model, clients=clients, test_share=0.2, output=str(tmp_path / "a"), **OPTIONS).rounds.iloc[-1]
    assert tuned == [1, 3]
    for kind in ("", "tuned_"):
        each: dict[str, str] = dict(part.split("=") for part in last[f"{kind}client_accuracies"].split())
        assert [*each] == ["1", "3"]
        assert last[f"{kind}client_accuracy_mean"] == pytest.approx(np.mean([*map(float, each.values())]), abs=1e-5)
    message = r"evaluation\.fine_tune: .* of the 4 clients of own data that take part none has a test sample"
    with pytest.raises(ConfigError, match=message):
        run(model=model, clients=clients, test=given([9])[0], output=str(tmp_path / "b"), **OPTIONS)


@pytest.mark.parametrize(
    ("method", "why"),
    [("ditto", "judges every client by a model of its own already"), ("centralized", "trains on all data in one")],
)
def test_methods_without_a_global_model_of_many_clients_are_refused(tmp_path: Path, method: str, why: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"evaluation.fine_tune: 2 is not possible with method {method}, which {why}"
    ):
        config(tmp_path, method__name=method)


def test_clients_with_statistics_of_their_own_are_refused(tmp_path: Path) -> None:
    given = {"model__name": "resnet18", "training__batchnorm_statistics": "local"}
    with pytest.raises(ConfigError, match=r"fedavg, whose clients have BatchNorm statistics of their own"):
        config(tmp_path, method__name="fedavg", **given)
