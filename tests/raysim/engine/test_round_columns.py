"""The list of a run's columns against the tables of runs; test_poisson_rounds.py has those of every method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from raysim.engine.round_columns import measurable
from raysim.results.result import comparable
from raysim.running.simulation import run
from raysim.storage.csv_table import TEXT_COLUMNS
from tests.small_runs import LOGISTIC, small_run, worker_of

RUNS: dict[str, dict[str, Any]] = {
    "plain": {},
    "more figures": {"evaluation__auc": True, "evaluation__decompose_every": 1, "schedule__unseen_clients": 1},
    "fine-tuned": {"evaluation__fine_tune": 1, "evaluation__each_client": True},
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
    assert {*measurable(worker_of(config)), "round"} == {*found} - {*TEXT_COLUMNS}


def test_a_first_client_without_held_out_samples_hides_no_column(tmp_path: Path) -> None:
    """A run that ends early by validation_accuracy was refused: client 0 alone was looked at."""
    draws = np.random.default_rng(0)
    clients = [(draws.normal(size=(size, 4)).astype(np.float32), np.arange(size) % 2) for size in (1, 30)]
    options: dict[str, Any] = {
        "evaluation.measure": "validation_accuracy",
        "evaluation.patience": 3,
        "engine.backend": "inline",
    }
    options |= {"rounds": 1, "test_share": 0.2, "validation_share": 0.2, "output": str(tmp_path / "run")}
    found = run(clients=clients, model=torch.nn.Linear(4, 2), **options)
    assert found.rounds["validation_accuracy"].notna().all()


def test_clients_without_test_samples_count_in_no_mean_and_take_no_place(tmp_path: Path) -> None:
    """With a limit of two, clients 0 and 2 were judged, neither of which has a test sample: all figures were NaN."""
    draws = np.random.default_rng(0)
    clients = [(draws.normal(size=(size, 4)).astype(np.float32), np.arange(size) % 2) for size in (1, 40, 1, 40)]
    options: dict[str, Any] = {"evaluation.fine_tune": 1, "evaluation.each_client": True, "engine.backend": "inline"}
    options |= {"rounds": 1, "test_share": 0.2, "pictures": False}
    torch.manual_seed(0)
    every, two = (
        run(
            clients=clients,
            model=torch.nn.Linear(4, 2),
            output=str(tmp_path / str(limit)),
            **options | {"evaluation.client_limit": limit},
        )
        for limit in (4, 2)
    )
    for found in (every, two):
        judged = found.rounds["client_accuracies"].iloc[-1].split()
        assert [part.partition("=")[0] for part in judged] == ["1", "3"]
        own = [float(part.partition("=")[2]) for part in judged]
        assert found.rounds["accuracy"].iloc[-1] == pytest.approx(np.mean(own))
        assert found.clients["tuned_accuracy"].notna().tolist() == [False, True, False, True]
