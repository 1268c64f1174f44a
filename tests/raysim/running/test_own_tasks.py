"""Runs of a user's own data whose models do not tell classes apart."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.cli.exit_status import _print_summary
from raysim.errors import ConfigError
from raysim.workloads.errors import WorkloadError
from tests.fingerprint import fingerprint
from tests.own_data import QUICK, samples


class NextToken(torch.nn.Module):
    """Of tokens 0 to 4 [B, T], scores of the next at every position [B, T, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.embedding(x))
        return scores


def data(kind: str, seed: int, count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    x, _ = samples(count, seed)
    if kind == "regression":
        return x, x @ np.array([1.0, -2.0, 0.5, 0.0], np.float32)
    if kind == "multilabel":
        return x, (x[:, :3] > 0).astype(np.int64)
    tokens = (np.arange(count)[:, None] + np.arange(7)) % 5
    return tokens[:, :-1].astype(np.uint8), tokens[:, 1:]


MODELS = {
    "regression": lambda: torch.nn.Linear(4, 1),
    "multilabel": lambda: torch.nn.Linear(4, 3),
    "sequences": NextToken,
}
FIGURES = {"regression": "absolute_error", "multilabel": "label_accuracy", "sequences": "accuracy"}


def run(kind: str, output: Path, method: str = "fedavg", **given: Any) -> Any:
    clients = [data(kind, seed) for seed in range(3)]
    chosen: dict[str, Any] = {"model": MODELS[kind], "clients": clients, "test": data(kind, 9), "learning_rate": 0.2}
    return raysim.run(method, **{**QUICK, **chosen, "output": str(output), **given})


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_the_task_is_found_learned_and_judged(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(kind, tmp_path / "run", rounds=6, pictures=True, validation_share=0.2)
    assert found.config["workload"]["task"] == kind
    column = found.rounds[FIGURES[kind]]
    assert found.rounds["loss"].iloc[-1] < found.rounds["loss"].iloc[0]
    assert (column.iloc[-1] < column.iloc[0]) == (kind == "regression")
    accurate = kind == "sequences"
    for name in ("accuracy", "client_accuracy_mean", "validation_accuracy"):
        assert (name in found.rounds) == accurate
    assert ("accuracy" in found.summary) == ("best_accuracy" in found.summary) == accurate
    _print_summary(found.folder, "")
    assert ("accuracy" if accurate else "loss") in capsys.readouterr().out.split()[0]
    assert (tmp_path / "run" / "report.html").exists() and (tmp_path / "run" / "partition.png").exists()


def test_a_loss_and_metrics_of_ones_own_are_used_and_kept_by_digest(tmp_path: Path) -> None:
    def pinball(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        error = y - outputs
        return torch.maximum(0.9 * error, -0.1 * error)

    metrics = {"above": lambda outputs, y: (outputs > y).float()}
    usual = run("regression", tmp_path / "usual", rounds=8)
    found = run("regression", tmp_path / "own", rounds=8, loss=pinball, metrics=metrics, test_share=0.2)
    assert (
        found.rounds["above"].iloc[-1] > found.rounds["above"].iloc[0]
        and "above" not in usual.rounds
        and "above" in found.clients
    )
    workload = found.config["workload"]
    assert (
        workload["loss"].endswith("pinball") and workload["metrics"] == ["above"] and len(workload["code_digest"]) == 64
    )
    assert "torch.maximum" in (found.folder / "source.txt").read_text()
    again = run("regression", tmp_path / "own", rounds=9, loss=pinball, metrics=metrics, resume=found.folder)
    assert len(again.rounds) == 9
    with pytest.raises(raysim.RaysimError, match=r"workload\.code_digest"):
        run("regression", tmp_path / "own", rounds=9, resume=found.folder)


class Weighted:
    """Squared errors by a weight; it counts its calls."""

    def __init__(self, weight: float, more: object = None) -> None:
        self.weight, self.calls, self.more = weight, 0, more

    def __call__(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.weight * (outputs - y) ** 2


def test_an_object_of_ones_own_is_told_by_its_attributes_and_left_as_it_is(tmp_path: Path) -> None:
    """Weights 2 and 3 had one digest, so that a run went on with another loss."""
    loss = Weighted(2)
    found = run("regression", tmp_path / "run", rounds=1, loss=loss)
    assert loss.calls == 0
    run("regression", tmp_path / "run", rounds=2, loss=loss, resume=found.folder)
    with pytest.raises(raysim.RaysimError, match=r"workload\.code_digest"):
        run("regression", tmp_path / "run", rounds=3, loss=Weighted(3), resume=found.folder)
    with pytest.raises(ConfigError, match=r"loss: Weighted cannot be copied .* Leave out of its attributes what"):
        run("regression", tmp_path / "locked", loss=Weighted(2, threading.Lock()))


def test_classes_that_are_written_as_fractions_are_told(tmp_path: Path) -> None:
    clients = [(x, y.astype(float)) for x, y in (samples(40, seed) for seed in range(3))]
    with pytest.warns(
        UserWarning, match=r"learned as numbers: regression. For classes give y.astype\(int\); if"
    ) as told:
        run("regression", tmp_path / "told", clients=clients, test=None, model="logistic")
    assert told[0].filename == __file__
    meant = run("regression", tmp_path / "meant", clients=clients, test=None, model="logistic", task="regression")
    assert "absolute_error" in meant.rounds


def test_a_personal_method_and_one_with_single_steps_learn_it_too(tmp_path: Path) -> None:
    found = run("regression", tmp_path / "personal", "fedbn", test=None, pictures=True)
    assert (
        found.rounds["loss"].iloc[-1] < found.rounds["loss"].iloc[0] and found.clients["absolute_error"].notna().all()
    )
    clients = [data("regression", seed, 4) for seed in range(40)]
    steps: dict[str, Any] = {"clients": clients, "training.batch_size": 64}
    merged = run("regression", tmp_path / "steps", **steps)
    alone = run("regression", tmp_path / "alone", **steps, merge_single_steps=False)
    assert fingerprint(merged.folder) == fingerprint(alone.folder)


@pytest.mark.parametrize("method", ["fedrad", "fedld", "fedcp", "fgssl"])
def test_methods_whose_mathematics_is_classification_say_so(method: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"method {method} .*is made for classification|needs a model"):
        run("regression", tmp_path / "run", method, test=None, optimizer="sgd")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        ("regression", {"loss": "mse"}, "loss: 'mse' is not allowed"),
        ("regression", {"loss": lambda outputs, y: 1.0}, "loss: it returned float for 2 samples"),
        ("regression", {"metrics": {"accuracy": abs}}, "metrics: 'accuracy' cannot be the name"),
        ("regression", {"metrics": {"mine": lambda outputs, y: y @ y @ y}}, "mine: it cannot take outputs"),
        ("regression", {"loss": lambda outputs, y: outputs[:, 0] - y}, r"outputs \(2,\) \(a regression's come in the"),
        ("regression", {"model": lambda: torch.nn.Linear(4, 2)}, r"the model gives \(2, 2\) .* with labels \(2,\)"),
        ("multilabel", {"task": "sequences"}, r"the model gives \(2, 3\) .* sequences asks for \(2, 3, 'number of"),
        ("sequences", {"auc": True}, "evaluation.auc: there is no AUC of sequences"),
    ],
)
def test_what_does_not_fit_is_one_sentence(kind: str, given: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, WorkloadError), match=words):
        run(kind, tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()
