"""Bad options and data: each with its own message, a non-zero exit code, and no folder left behind.

tests/test_bad_files.py has files that are damaged.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.bad_files import archive
from tests.raysim.conftest import Start


def test_a_missing_data_folder(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr("socket.socket.connect", lambda *_: (_ for _ in ()).throw(OSError("no network in tests")))
    code, error = start("--workload=cifar10", "--output=run")
    assert code == 2 and "nowhere" in error and "Traceback" not in error


def test_a_client_with_one_sample_and_batch_norm(start: Start, tmp_path: Path) -> None:
    sites = np.array(["large"] * 40 + ["medium"] * 19 + ["single"])
    path = archive(train_sites=sites)(tmp_path)
    data = ("--workload=npz", f"--workload.path={path}", "--workload.partition=sites")
    code, error = start(*data, "--model=mine:WithBatchNorm", "--output=run")
    assert code == 1
    assert "client 2, round 1, stage data: this client has one training sample" in error
    assert "take a model without BatchNorm" in error and "Traceback" not in error


def test_clients_without_a_local_test_sample_leave_personal_accuracy_empty(start: Start, tmp_path: Path) -> None:
    code, error = start(
        "--method=local", "--workload.limit=4", "--workload.min_samples=1", "--workload.partition=iid", "--output=run"
    )
    assert code == 0, error
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["accuracy"] is None


def test_a_gpu_that_this_machine_does_not_have(start: Start) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    code, error = start("--engine.gpus_per_client=0.5")
    assert code == 2 and "--engine.gpus_per_client" in error and "Traceback" not in error


def test_a_python_without_a_package_that_raysim_needs(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)  # as if it were not installed
    code, error = start("--learning_rate=0.1")
    assert code == 2 and f"{sys.executable} has no package 'pydantic'" in error
    assert ".venv/bin/activate" in error and "is not allowed" not in error and "Traceback" not in error
