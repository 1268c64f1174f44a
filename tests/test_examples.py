"""The programs in examples/: numbers worked out by hand, and small runs in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from examples import loop
from examples.own_method import FedDyn, Server
from examples.own_workload import Rings
from raysim.cohort import Cohort
from raysim.config.sections import Training
from raysim.flat_model import FlatModel
from raysim.launch import main
from raysim.method import ClientTask, Message
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Batch, ClientData
from tests.fingerprint import fingerprint
from tests.raysim.methods.by_hand import InOrder, context, updates
from tests.small_runs import IN_PROCESS, LOGISTIC, words

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = IN_PROCESS | LOGISTIC | {"model.name": "mlp"}
SMALL = words({path: value for path, value in SETTINGS.items() if path != "method.name"})


def test_a_client_task_of_feddyn_by_hand() -> None:
    # Logits (w0, w1) = (0, 0), label 0: the gradient is (-1/2, 1/2); minus g = (1/4, -1/2) it is (-3/4, 1).
    # Rate 1/2: w = (3/8, -1/2). The second step has p0 = sigmoid(7/8) and the penalty α (w - 0) = 2 (3/8, -1/2).
    method, state = FedDyn(alpha=2.0), np.array([0.25, -0.5], np.float32)
    module = torch.nn.Linear(1, 2, bias=False)
    model = FlatModel(module, method.shared_names(module))
    task = ClientTask(0, 1, 0, 1, 0.5, Training(learning_rate=0.5, batch_size=1), classes=2)
    samples = InOrder(*[Batch(torch.tensor([[1.0]]), torch.tensor([0]))] * 2)
    data = ClientData(0, "one", samples, samples)
    update, after = method.train(model, data, Message(np.zeros(2, np.float32)), state, task)
    p1 = 1 - 1 / (1 + np.exp(-7 / 8))
    expected = [0.375 - 0.5 * (-p1 + 0.75 - 0.25), -0.5 - 0.5 * (p1 - 1.0 + 0.5)]
    assert update.delta == pytest.approx(expected, abs=1e-6)
    assert after == pytest.approx([0.25 - 2 * expected[0], -0.5 - 2 * expected[1]], abs=1e-6)
    assert state.tolist() == [0.25, -0.5], "a client task may not write to what it was given"


def test_a_server_step_of_feddyn_by_hand() -> None:
    # Two parameters and a buffer; two of five clients, α = 1/2. Mean change: (1, -2, 4), not weighted by samples.
    # h = (1, 1) - 1/2 · 2/5 · (1, -2) = (4/5, 7/5); θ = (10, 20, 30) + (1, -2, 4) - (8/5, 14/5, 0).
    told = context(cohort=Cohort(2, 100, 4, 300, 5))
    server = Server(np.array([10, 20, 30], np.float32), np.array([1, 1], np.float32))
    after = FedDyn(alpha=0.5).aggregate(server, updates([[3, -1, 6], [-1, -3, 2]], [10, 90], [1, 4]), told)
    assert after.gradient == pytest.approx([0.8, 1.4])
    assert after.parameters == pytest.approx([9.4, 15.2, 34.0])
    assert told.report.round_columns["h_norm"] == pytest.approx(np.hypot(0.8, 1.4))


def test_what_the_server_gathers_is_the_mean_of_what_the_clients_keep() -> None:
    """h = (1/N) Σ g_k over all clients, also over those that no round has sampled yet."""
    generator, method = np.random.default_rng(0), FedDyn(alpha=0.3)
    server, states = Server(np.zeros(4, np.float32), np.zeros(3, np.float32)), np.zeros((5, 3), np.float32)
    for cohort in ((0, 3), (3, 1), (0, 1)):
        changes = generator.normal(size=(2, 4)).astype(np.float32)
        states[list(cohort)] -= np.float32(0.3) * changes[:, :3]
        told = context(3, cohort=Cohort(2, 2, 5, 5, 5))
        server = method.aggregate(server, updates(changes, [1, 1], cohort), told)
    np.testing.assert_allclose(server.gradient, states.mean(axis=0), atol=1e-6)


@pytest.mark.slow
def test_the_own_method_runs_by_its_name_and_by_its_file(tmp_path: Path) -> None:
    """Both have the same bits; on Ray a method of a script is tested in tests/actors/test_shared_ray.py."""
    assert main([*SMALL, "--method=examples.own_method:FedDyn", f"--output={tmp_path / 'by-name'}"]) == 0
    script = [sys.executable, str(ROOT / "examples" / "own_method.py"), *SMALL, f"--output={tmp_path / 'by-file'}"]
    done = subprocess.run(script, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert fingerprint(tmp_path / "by-name") == fingerprint(tmp_path / "by-file")


def test_the_loop_makes_a_table_of_several_runs(tmp_path: Path) -> None:
    settings = {
        "workload": {"clients": 3, "limit": 150},
        "model": "logistic",
        "schedule": {"rounds": 1, "local_epochs": 1},
        "engine": {"backend": "inline"},
        "pictures": False,
    }
    methods: dict[str, dict[str, Any]] = {"average": {"name": "fedavg"}, "strong": {"name": "fedprox", "mu": 1.0}}
    results = loop.compare(methods, seeds=(0, 1), settings=settings, folder=str(tmp_path))
    assert results[["method", "seed"]].to_numpy().tolist() == [
        ["average", 0],
        ["average", 1],
        ["strong", 0],
        ["strong", 1],
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fedavg-0", "fedavg-1", "fedprox-2", "fedprox-3"]
    mean, std = loop.table(results.assign(accuracy=[0.5, 0.75, 0.25, 0.25])).loc["average"]
    assert (mean, std) == (0.625, 0.177)


def test_the_settings_of_the_loop_are_settings() -> None:
    """What ``python examples/loop.py`` would run, without running it."""
    from raysim.config.command_line import given_config

    for method in loop.METHODS.values():
        config = given_config({**loop.SETTINGS, "method": method})
        assert (config.schedule.rounds, config.schedule.local_epochs, config.workload.clients) == (10, 2, 10)


def test_the_own_workload_and_the_own_model_run_by_their_names(tmp_path: Path) -> None:
    """The command of their docstrings, their options, and the same bits a second time."""
    words = ["--method=fedavg", "--workload=examples.own_workload:Rings", "--model=examples.own_model:Narrow"]
    words += ["--engine.backend=inline", "--pictures=false", "--rounds=6", "--learning_rate=0.5", "--width=16"]
    for name in ("one", "two"):
        assert main([*words, "--noise=0.1", "--partition=quantity", f"--output={tmp_path / name}"]) == 0
    rounds = pd.read_csv(tmp_path / "one" / "rounds.csv")
    assert rounds["accuracy"].iloc[-1] > 0.9
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two")
    with pytest.raises(WorkloadError, match="2000 clients are more than the 1000 training samples"):
        Rings(clients=2000).load(lambda purpose: np.random.default_rng(0))


def test_the_own_model_trains_on_images_too(tmp_path: Path) -> None:
    words = [word for word in SMALL if not word.startswith("--model")]
    assert main([*words, "--method=fedavg", "--model=examples.own_model:Narrow", f"--output={tmp_path / 'run'}"]) == 0
