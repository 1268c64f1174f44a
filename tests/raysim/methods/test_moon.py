"""MOON: its contrastive loss by hand, what it remembers, and where it is FedAvg."""

from __future__ import annotations

from math import exp, log
from pathlib import Path
from typing import Any

import pytest
import torch

from raysim.methods.moon import contrast_loss
from raysim.running.simulation import run
from tests.fingerprint import fingerprint
from tests.small_runs import small_run

SMALL: dict[str, Any] = {"workload.clients": 3, "workload.limit": 120, "model.name": "mlp", "schedule.rounds": 3}


def test_the_loss_by_hand() -> None:
    # cos = 1 with the global and -1 with the last features, then 0 and 0.6; τ = 1/2.
    features = torch.tensor([[2.0, 0.0], [0.0, 5.0]])
    by_global = torch.tensor([[1.0, 0.0], [-3.0, 0.0]])
    by_last = torch.tensor([[-4.0, 0.0], [0.8, 0.6]])
    expected = (log(1 + exp(-2 - 2)) + log(1 + exp(1.2 - 0))) / 2
    assert float(contrast_loss(features, by_global, by_last, 0.5)) == pytest.approx(expected, rel=1e-6)


def test_without_its_term_it_is_fedavg_and_with_it_it_is_not(tmp_path: Path) -> None:
    chosen: dict[str, dict[str, Any]] = {
        "fedavg": {"method__name": "fedavg"},
        "none": {"method__name": "moon", "method__mu": 0.0},
        "some": {"method__name": "moon"},
    }
    found = {
        name: fingerprint(run(small_run(tmp_path / name, SMALL, **options)).folder) for name, options in chosen.items()
    }
    assert found["none"]["server"] == found["fedavg"]["server"] != found["some"]["server"]
