"""A run in MLflow: the store of ``MLFLOW_TRACKING_URI``, by default ``mlflow.db`` in the current folder."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import Any

from raysim.monitor.tracker import Tracked, Tracker

STATUS = {"finished": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}


class MLflow(Tracker):
    """Settings are MLflow's parameters, columns of the rounds table its metrics, with the round as their step."""

    package = "mlflow"

    def begin(self, run: Tracked, earlier: str) -> str:
        """Open a run of the experiment, which is made unless it is there."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing is ever sent that was not asked for
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        self._client = MlflowClient()
        if earlier:
            self._client.delete_run(earlier)
        made = self._client.create_run(self._experiment(run.experiment), tags=dict(run.tags), run_name=run.name)
        self._run = str(made.info.run_id)
        settings = [Param(path, str(value)) for path, value in run.settings.items()]
        for start in range(0, len(settings), 100):  # MLflow's limit
            self._client.log_batch(self._run, params=settings[start : start + 100])
        return self._run

    def log(self, number: int, values: Mapping[str, float]) -> None:
        """Keep the round, in one call."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._client.log_batch(self._run, [Metric(name, value, now, number) for name, value in values.items()])

    def end(self, status: str, summary: Mapping[str, Any]) -> None:
        """Close the run; the head of its proof is a tag."""
        if "proof" in summary:
            self._client.set_tag(self._run, "proof", summary["proof"])
        self._client.set_terminated(self._run, STATUS.get(status, "KILLED"))

    def _experiment(self, name: str) -> str:
        from mlflow.exceptions import MlflowException

        for last in (False, True):
            if (found := self._client.get_experiment_by_name(name)) is not None:
                return str(found.experiment_id)
            try:
                return str(self._client.create_experiment(name))
            except MlflowException:  # another cell of the study has made it meanwhile
                if last:
                    raise
        raise AssertionError


TRACKER = MLflow
