"""Data, model and method of a script's own on Ray: the bits of a run in one process, and of one that was killed."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.methods.fedprox import FedProx
from tests.fingerprint import fingerprint
from tests.long_tests import long
from tests.own_data import QUICK, samples, seeded, three_clients
from tests.own_graphs import Net, graphs
from tests.processes import Killer


class Script(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.layer(x)
        return scores


@dataclass(frozen=True)
class Doubled(FedProx):
    """Twice FedProx's step; where the file ``sentence`` is there in round 3, the driver dies of it."""

    sentence = ""

    def aggregate(self, server: Any, updates: Any, report: Any) -> Any:
        if self.sentence and report.round == 3 and Path(self.sentence).exists():
            Path(self.sentence).unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return server + np.float32(2) * updates.mean()


def run(output: Path, backend: str, **given: Any) -> Any:
    for cls in (Script, Doubled):
        cls.__module__ = "__main__"  # nothing that another process could import
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Script()
    settings = {
        **QUICK,
        "rounds": 5,
        "engine": {"backend": backend, "actors": 2 * (backend == "ray"), "dashboard": False, "checkpoint_every": 1},
    }
    clients = dict(zip("abc", three_clients(), strict=True))
    functions: dict[str, Any] = {
        "loss": lambda outputs, y: torch.nn.functional.cross_entropy(outputs, y, label_smoothing=0.1),
        "metrics": {"margin": lambda outputs, y: outputs.max(dim=1).values - outputs.min(dim=1).values},
    }
    chosen: dict[str, Any] = functions | {
        "model": model,
        "clients": clients,
        "test": samples(20, 9),
        "output": str(output),
    }
    return raysim.run(Doubled(mu=0.5), **{**settings, **chosen, **given})


@pytest.mark.usefixtures("ray_session")
def test_two_actors_and_a_killed_driver_give_the_bits_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentence = tmp_path / "sentence"
    monkeypatch.setattr(Doubled, "sentence", str(sentence))
    expected = fingerprint(run(tmp_path / "inline", "inline").folder)
    sentence.touch()
    found = run(tmp_path / "ray", "ray")
    assert not sentence.exists()
    assert isinstance(found.model, Script)
    assert fingerprint(found.folder) == expected
    part = run(tmp_path / "part", "inline", rounds=2)
    longer = run(tmp_path / "part", "inline", resume=part.folder)
    assert fingerprint(longer.folder) == expected


@long  # test_every_method.py kills an actor that has graphs of a user's own
@pytest.mark.usefixtures("ray_session")
def test_graphs_on_two_actors_of_which_one_is_killed_give_the_bits_of_one_process(tmp_path: Path) -> None:
    def train(backend: str, **more: Any) -> Any:
        engine = {"backend": backend, "actors": 2 * (backend == "ray"), "dashboard": False}
        settings = {**QUICK, "rounds": 4, "local_epochs": 30, "engine": engine, "output": str(tmp_path / backend)}
        clients = {"ward": graphs(14), "lab": graphs(11), "home": graphs(9)}
        return raysim.run("fedprox", model=Net, clients=clients, **settings, **more)

    killer = Killer("ray::train[round", round=2)
    found = train("ray", observer=killer)
    assert killer.killed
    assert fingerprint(found.folder) == fingerprint(train("inline").folder)


def test_the_data_goes_to_actors_once_and_not_with_the_config() -> None:
    from raysim.actors.early_actors import _without_data
    from raysim.running.python_objects import config_of

    config, _ = config_of("fedavg", None, {}, seeded(), three_clients())
    assert config.workload.held is not None and _without_data(config).workload.held is None
    assert _without_data(config).workload == config.workload
