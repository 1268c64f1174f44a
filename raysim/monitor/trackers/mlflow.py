"""A run in MLflow: the store of ``MLFLOW_TRACKING_URI``, by default ``mlflow.db`` in the current folder."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from raysim.monitor.tracker import Tracked, Tracker
from raysim.storage.claims import alone

STATUS = {"finished": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}


class MLflow(Tracker):
    """Settings are MLflow's parameters, columns of the rounds table its metrics, with the round as their step."""

    package = "mlflow"

    def begin(self, run: Tracked, earlier: str) -> str:
        """Open a run of the experiment, which is made unless it is there; so is the store."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing is ever sent that was not asked for
        import mlflow

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        _, local, store = mlflow.get_tracking_uri().rpartition("sqlite:///")
        # One after another: two cells of a study that make a store at once would leave half of one.
        with alone(Path(store if local else "mlflow")):
            self._client = mlflow.MlflowClient()
            found = self._client.get_experiment_by_name(run.experiment)
            experiment = found.experiment_id if found else self._client.create_experiment(run.experiment)
        if earlier:
            with suppress(mlflow.MlflowException):  # it was in another store
                self._client.delete_run(earlier)
        self._run = self._client.create_run(experiment, tags={**run.tags}, run_name=run.name).info.run_id
        params = [mlflow.entities.Param(path, str(value)) for path, value in run.settings.items()]
        for start in range(0, len(params), 100):  # MLflow's limit
            self._client.log_batch(self._run, params=params[start : start + 100])
        return str(self._run)

    def log(self, number: int, values: Mapping[str, float]) -> None:
        """Keep the round, in one call."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._client.log_batch(self._run, [Metric(name, value, now, number) for name, value in values.items()])

    def end(self, status: str, proof: str) -> None:
        """Close the run; the head of its proof is a tag."""
        if proof:
            self._client.set_tag(self._run, "proof", proof)
        self._client.set_terminated(self._run, STATUS.get(status, "KILLED"))


TRACKER = MLflow
