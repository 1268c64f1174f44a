"""Bad options and bad data: each with its own message, a non-zero exit code, and no folder left behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.raysim.conftest import Start


@pytest.mark.parametrize("argument", ["--method=fedrat", "--lr=0.1", "--rounds=0", "--engine.gpus_per_client=0.4"])
def test_an_unknown_name_or_value_is_refused_before_anything_is_written(
    start: Start, tmp_path: Path, argument: str
) -> None:
    """tests/raysim/config has what is said to each."""
    code, error = start(argument)
    assert code == 2 and error.startswith("raysim: ") and error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def arrays(count: int = 60) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    return {
        "train_images": generator.integers(0, 255, (count, 8, 8), dtype=np.uint8),
        "train_labels": generator.integers(0, 2, (count, 1)),
        "test_images": generator.integers(0, 255, (20, 8, 8), dtype=np.uint8),
        "test_labels": generator.integers(0, 2, (20, 1)),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "may be truncated"),
        ({"train_images": np.zeros((60, 64), np.uint8)}, "train_images is uint8 (60, 64); expected"),
        ({"train_labels": np.zeros((59, 1), np.int64)}, "expected one whole number for each of the 60 images"),
    ],
    ids=["truncated", "shape", "labels"],
)
def test_data_that_cannot_be_read(start: Start, tmp_path: Path, change: dict[str, Any] | None, message: str) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays() | (change or {}))
    if change is None:
        path.write_bytes(path.read_bytes()[:3000])
    code, error = start("--workload=npz", "--workload.path=data.npz", "--output=run")
    assert code == 2 and message in error and "Traceback" not in error
    assert not (tmp_path / "run").exists()  # nothing was computed: the name is free for the next try


def test_a_missing_data_folder(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr("socket.socket.connect", lambda *_: (_ for _ in ()).throw(OSError("no network in tests")))
    code, error = start("--workload=cifar10", "--output=run")
    assert code == 2 and "nowhere" in error and "Traceback" not in error


def single_sample_site(path: Path) -> None:
    names = np.array(["large"] * 40 + ["medium"] * 19 + ["single"])
    np.savez(path, **arrays() | {"train_sites": names})


SITES = ("--workload=npz", "--workload.path=sites.npz", "--workload.partition=sites", "--output=run")


def test_a_client_with_one_sample_and_batch_norm(start: Start, tmp_path: Path) -> None:
    single_sample_site(tmp_path / "sites.npz")
    code, error = start(*SITES, "--model=mine:WithBatchNorm")
    assert code == 1
    assert "client 2, round 1, stage data: this client has one training sample" in error
    assert "take a model without BatchNorm" in error and "Traceback" not in error


def test_a_client_with_one_sample_without_batch_norm_trains(start: Start, tmp_path: Path) -> None:
    single_sample_site(tmp_path / "sites.npz")
    code, _ = start(*SITES)
    assert code == 0 and (tmp_path / "run" / "summary.json").exists()


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
