"""The round loop: who takes part for how many epochs, with every method; the rule for BatchNorm; what is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch

import raysim
from raysim import schedule
from raysim.config import registry
from raysim.config.run_config import RunConfig
from raysim.engine import rounds
from raysim.engine.cohort_run import Collector
from raysim.engine.observer import Silent
from raysim.errors import RaysimError, ResultsError
from raysim.replay.membership import membership
from raysim.results.result import load_result
from raysim.running.simulation import run
from raysim.storage.run_folder import RunFolder
from raysim.verification.folder_check import FolderCheck
from tests.fingerprint import fingerprint
from tests.made_subgraphs import NODE_METHODS, node_options
from tests.own_data import QUICK, three_clients
from tests.small_runs import small_run

BASE = {
    "model.name": "mlp",
    "workload.clients": 5,
    "workload.limit": 300,
    "schedule.rounds": 4,
    "schedule.local_epochs": 2,
}


def config(tmp_path: Path, method: str, **options: Any) -> RunConfig:
    return small_run(tmp_path / "run", BASE, method__name=method, **options)


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in registry.known("method") if name != "centralized"])
def test_sampling_and_late_joiners_work_with_every_method(tmp_path: Path, method: str) -> None:
    options: dict[str, object] = {
        "schedule__joins": (2, 2, 1),
        "schedule__join_every": 2,
        "schedule__intervals": "fixed",
    }
    own = getattr(registry.resolve("method", method), "defaults", {})
    if own.get("workload.name") == "toy-graphs":  # a method for graphs, on a network of its own
        options |= {"workload__name": "toy-graphs", "model__name": own["model.name"], "model__hidden": 8}
        options |= {"workload__limit": None, "workload__graphs_per_client": 20}
    if method in NODE_METHODS:
        options |= node_options()
    result = run(config(tmp_path, method, **options))
    # 2 epochs a round: a group joins at each of rounds 2 and 3.
    assert result.rounds["participants"].tolist() == [2, 4, 5, 5]
    first = result.clients.groupby("client")["round"].min()
    assert first.to_dict() == {0: 1, 1: 1, 2: 2, 3: 2, 4: 3}
    assert np.isfinite(result.rounds["loss"]).all()


def test_a_sample_of_the_joined_takes_part(tmp_path: Path) -> None:
    result = run(config(tmp_path, "fedavg", schedule__sampling_rate=0.4, schedule__rounds=8))
    assert result.rounds["participants"].tolist() == [2] * 8
    assert result.clients["client"].nunique() > 2


def test_centralized_is_one_client_with_everything(tmp_path: Path) -> None:
    central = run(config(tmp_path / "a", "centralized", schedule__joins=(2, 3), schedule__join_every=2))
    apart = run(config(tmp_path / "b", "fedavg"))
    assert central.rounds["participants"].tolist() == [1] * 4
    assert central.clients["samples"].iloc[0] == apart.clients.query("round == 1")["samples"].sum()


@pytest.mark.parametrize(("method", "intervals"), [("fedavg", "random"), ("fedrad", "method")])
def test_local_epochs_are_those_of_the_plan(tmp_path: Path, method: str, intervals: str) -> None:
    wanted = config(tmp_path, method, schedule__intervals=intervals, schedule__rounds=8)
    plan = schedule.planned_intervals(wanted)
    result = run(wanted)
    assert result.rounds["local_epochs"].tolist() == plan
    assert result.rounds["epochs_total"].tolist() == np.cumsum(plan).tolist()
    assert len(set(plan)) > 1
    # A full pass over m samples in batches of 32, no batch of one: what a client did is what the plan said.
    row = result.clients.iloc[0]
    assert row["steps"] == row["local_epochs"] * -(-(row["samples"] - 1) // 32)


def test_batch_norm_statistics_travel(tmp_path: Path) -> None:
    result = run(config(tmp_path, "fedavg", model__name="mobilenet", workload__clients=2, schedule__rounds=1))
    (server,) = safetensors.numpy.load(fingerprint(result.folder)["server"]).values()
    # 2,236,106 parameters (one input channel) and 2 · 17,056 running statistics, all in 4 bytes each way a client.
    assert result.rounds["bytes_up"].iloc[0] == 2 * server.nbytes
    assert server.size == result.summary["model_values"] == 2_236_106 + 2 * 17_056
    variances = server[-17_056:]
    assert (variances != 1).any()
    assert np.isfinite(server).all()


def test_a_mean_by_samples_shows_its_weights(tmp_path: Path) -> None:
    last = run(config(tmp_path, "fedprox")).clients.query("round == 4")
    assert last["weight"].to_numpy() == pytest.approx((last["samples"] / last["samples"].sum()).to_numpy())
    assert last["name"].tolist() == [f"client {client}" for client in range(5)]


def test_tables_agree_with_each_other(tmp_path: Path) -> None:
    result = run(config(tmp_path, "fedrad"))
    last = result.clients.query("round == 4")
    assert last["weight"].sum() == pytest.approx(1)
    assert result.rounds["client_accuracy_mean"].iloc[-1] == pytest.approx(last["accuracy"].mean())
    assert result.rounds["client_accuracy_std"].iloc[-1] == pytest.approx(last["accuracy"].std(ddof=0))
    assert result.rounds["client_accuracy_worst_decile"].iloc[-1] == pytest.approx(last["accuracy"].min())
    weighted = np.average(last["train_loss"], weights=last["samples"])
    assert result.rounds["train_loss"].iloc[-1] == pytest.approx(weighted)
    parquet = pd.read_parquet(result.folder / "clients.parquet")
    pd.testing.assert_frame_equal(parquet, result.clients, check_dtype=False)


@pytest.mark.parametrize("method", ["fedavg", "local"])
def test_auc_beside_accuracy(tmp_path: Path, method: str) -> None:
    result = run(config(tmp_path / "a", method, evaluation__auc=True))
    plain = run(config(tmp_path / "b", method))
    assert result.rounds["auc"].between(0.5, 1).all()
    last = result.clients.query("round == 4")
    assert {"auc", "balanced_accuracy"} <= set(last)
    if method == "local":
        assert result.rounds["auc"].iloc[-1] == pytest.approx(last["auc"].mean())
    assert result.rounds["accuracy"].tolist() == plain.rounds["accuracy"].tolist()


@pytest.mark.parametrize(
    ("classes", "asked", "there"),
    [(2, {}, True), (3, {}, False), (2, {"auc": False}, False), (2, {"measure": "auc", "patience": 1}, True)],
)
def test_two_classes_have_an_auc_without_asking(
    tmp_path: Path, classes: int, asked: dict[str, object], there: bool
) -> None:
    clients = [(x, np.minimum(y, classes - 1)) for x, y in three_clients()]
    given: dict[str, Any] = {
        "model": torch.nn.Linear(4, classes),
        "clients": clients,
        "learning_rate": 0.5,
        "evaluation": asked,
    }
    result = raysim.run("fedavg", **QUICK, **given, output=str(tmp_path))
    assert ("auc" in result.rounds) == ("auc" in result.clients) == there
    assert not there or result.rounds["auc"].iloc[-1] > 0.5


def test_frozen_batchnorm_needs_a_model_with_batchnorm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(
        "raysim.workloads.models.model_options.ModelOptions.batch_norm"
    )  # as a model of a user's own may have none
    with pytest.raises(RaysimError, match=r"training\.freeze_batchnorm: true has no effect.*resnet18"):
        run(config(tmp_path, "fedavg", training__freeze_batchnorm=True))


def test_with_statistics_of_their_own_clients_are_judged_on_their_own_test_sets(tmp_path: Path) -> None:
    given = {"model__name": "mobilenet", "model__width": 0.1, "training__batchnorm_statistics": "local"}
    asked = config(tmp_path, "fedavg", schedule__rounds=1, **given)
    result = run(asked)
    assert result.rounds["accuracy"].iloc[0] == pytest.approx(result.clients["accuracy"].mean(), abs=1e-12)
    assert not (result.folder / "model.safetensors").exists()
    with pytest.raises(ResultsError, match="every client has a model of its own"):
        membership([0], (asked, result.folder), (asked, result.folder))


def test_with_a_common_local_test_set_all_models_are_judged_on_it(tmp_path: Path) -> None:
    result = run(config(tmp_path, "local", workload__local_test="global", schedule__rounds=1))
    assert result.rounds["accuracy"].iloc[0] == pytest.approx(result.clients["accuracy"].mean(), abs=1e-12)
    # Of the 359 common test images a whole number is right; a client's own test set would have 12.
    right = result.clients["accuracy"].to_numpy() * 359
    assert right == pytest.approx(np.round(right), abs=1e-9)


def test_updates_are_collected_for_the_method_with_its_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise is found once the rounds are planned; whatever uses the method is built after that."""
    built: list[Any] = []

    def collector(config: RunConfig, method: Any, *rest: Any) -> Collector:
        built.append(method)
        return Collector(config, method, *rest)

    monkeypatch.setattr(rounds, "Collector", collector)
    run(config(tmp_path, "fedavg", schedule__rounds=2, privacy__kind="central", privacy__epsilon=50.0))
    (method,) = built
    assert method.noise > 0 and method.spent(2)["epsilon"] <= 50


VIRTUAL = {"devices__preset": "classes", "timing__mode": "buffered", "timing__buffer": 2}


class Failing(Silent):
    """An observer that raises an error once it is told of the third round."""

    def __init__(self, error: BaseException, function: str) -> None:
        self.error, self.function = error, function

    def clients_finished(self, rows: Any) -> None:
        if self.function == "clients_finished" and rows[0]["round"] == 3:
            raise self.error

    def round_finished(self, row: Any) -> None:
        if self.function == "round_finished" and row["round"] == 3:
            raise self.error


def must_be_equal(found: Path, expected: Path) -> None:
    """Tables, states, proof and summary of two runs, and the first against its proof."""
    assert fingerprint(found) == fingerprint(expected)
    first, second = (load_result(folder).summary for folder in (found, expected))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    assert FolderCheck(found).run().equal


@pytest.mark.parametrize("function", ["clients_finished", "round_finished"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RaysimError("no disk")], ids=["interrupt", "error"])
@pytest.mark.parametrize(
    ("method", "options"), [("scaffold", {}), ("fedavg", VIRTUAL), ("fedavg", {"evaluation__patience": 1})]
)
def test_an_observer_that_raises_takes_no_round_back(
    tmp_path: Path, method: str, options: dict[str, Any], error: BaseException, function: str
) -> None:
    """The round is in the tables when an observer is told: a checkpoint without it would have it done twice."""
    base = {"model__name": "logistic", "engine__checkpoint_every": 100, **options}
    whole = run(config(tmp_path / "whole", method, **base)).folder
    cut = config(tmp_path / "cut", method, **base)
    with pytest.raises(type(error)):
        run(cut, observer=Failing(error, function))
    folder = tmp_path / "cut" / "run"
    assert load_result(folder).rounds["round"].tolist() == [1, 2, 3]
    assert (folder / "checkpoints" / "round-000003").is_dir()
    run(cut, resume=folder)
    must_be_equal(folder, whole)


@pytest.mark.parametrize("function", ["append_round", "append_clients"])
def test_a_round_whose_rows_may_be_half_written_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    base = {"model__name": "logistic", "engine__checkpoint_every": 2}
    whole = run(config(tmp_path / "whole", "scaffold", **base)).folder
    write, calls = getattr(RunFolder, function), 0

    def interrupted(folder: RunFolder, rows: Any) -> None:
        nonlocal calls
        write(folder, rows)
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, function, interrupted)
    cut, folder = config(tmp_path / "cut", "scaffold", **base), tmp_path / "cut" / "run"
    with pytest.raises(KeyboardInterrupt):
        run(cut)
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["round-000002"]
    run(cut, resume=folder)
    must_be_equal(folder, whole)
