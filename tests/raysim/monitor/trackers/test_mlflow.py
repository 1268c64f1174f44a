"""What MLflow's local store has of a run that was stopped and resumed."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from raysim.running.simulation import run
from tests.raysim.monitor.trackers.tracked_run import BASE, EXPERIMENT, cells, curves, head, resumed
from tests.small_runs import small_run

pytest.importorskip("mlflow")
pytest.importorskip("sqlalchemy")


def test_the_store_has_every_round_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.tracking import MlflowClient

    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    result = resumed(tmp_path / "run", "mlflow")
    client = MlflowClient(store)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED" and found.info.run_name == "run"
    tags = {"method": "fedavg", "workload": "digits", "seed": "3", "proof": head(tmp_path / "run")}
    assert tags.items() <= found.data.tags.items()
    assert found.data.params["model.name"] == "logistic"
    for name, curve in curves(result).items():
        history = client.get_metric_history(found.info.run_id, name)
        assert sorted((each.step, each.value) for each in history) == curve


def test_a_study_is_an_experiment_with_its_cells_as_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.tracking import MlflowClient

    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    heads = cells(tmp_path / "study", "mlflow")
    client = MlflowClient(store)
    runs = client.search_runs([client.get_experiment_by_name(EXPERIMENT).experiment_id])
    assert {run.info.run_name: run.data.tags["proof"] for run in runs} == heads and len(heads) == 2
    assert {(run.data.tags["method"], run.data.tags["seed"]) for run in runs} == {("fedavg", "0"), ("fedavg", "1")}


def _run(folder: Path) -> None:
    run(small_run(folder, BASE | {"engine.observer": "mlflow"}))


def test_two_processes_share_a_new_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.tracking import MlflowClient

    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    processes = [
        multiprocessing.get_context("spawn").Process(target=_run, args=(tmp_path / "runs" / name,)) for name in "ab"
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    client = MlflowClient(store)
    experiment = client.get_experiment_by_name("runs")
    assert {found.info.run_name for found in client.search_runs([experiment.experiment_id])} == {"a", "b"}
