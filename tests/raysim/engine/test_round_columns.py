"""The list of a run's columns against the tables of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raysim.engine.round_columns import measurable
from raysim.run_result import comparable
from raysim.simulation import run
from tests.actors.runs import METHODS, OTHERS, quick
from tests.small_runs import LOGISTIC, small_run, worker_of

RUNS: dict[str, dict[str, Any]] = {
    "plain": {},
    "more figures": {"evaluation__auc": True, "evaluation__decompose_every": 1, "schedule__unseen_clients": 1},
    "held-out samples": {"workload__validation_share": 0.3},
    "virtual time": {"devices__preset": "phones", "timing__mode": "buffered", "timing__buffer": 2},
    "backdoor": {"attack__kind": "backdoor", "attack__malicious_share": 0.5},
    "adaptive bound": {
        "privacy__kind": "central",
        "privacy__noise_multiplier": 1.0,
        "privacy__clip_quantile": 0.5,
    },
}


@pytest.mark.parametrize("name", RUNS)
def test_the_table_has_the_columns_that_were_told(tmp_path: Path, name: str) -> None:
    config = small_run(tmp_path / "run", LOGISTIC, **RUNS[name])
    found = comparable(run(config).rounds)
    numbers = [column for column in found if found[column].dtype != object]
    assert {*measurable(worker_of(config)), "round"} == {*numbers}


@pytest.mark.slow
@pytest.mark.parametrize("method", [*METHODS, *OTHERS])
def test_methods_declare_what_they_report(tmp_path: Path, method: str) -> None:
    graphs = "workload__name" in quick(method)
    common = {} if graphs else LOGISTIC | {"workload.clients": 6}
    config = small_run(tmp_path / "run", common, **quick(method), evaluation__every=3)
    found = comparable(run(config).rounds)
    assert {*measurable(worker_of(config)), "round"} == {*found}
