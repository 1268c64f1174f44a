"""What MLflow's local store has of a run that was stopped and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.raysim.monitor.trackers.tracked_run import EXPERIMENT, curves, head, resumed

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
