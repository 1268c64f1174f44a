"""Objects given to a run that are not what they must be: one sentence each, and one family of errors."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import raysim
from raysim.errors import ConfigError, RaysimError
from raysim.workloads.errors import WorkloadError
from tests.own_data import QUICK, Net, samples, seeded, three_clients

PLACES: dict[str, Any] = {}


class Leaving(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sys.exit(0)


class Locked(Net):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


def leave(outputs: Any = None, labels: Any = None) -> Any:
    sys.exit(0)


CASES: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "a model that ends the program": (lambda: {"model": Leaving()}, r"the model cannot take .*: SystemExit"),
    "a loss that ends the program": (
        lambda: {"loss": lambda outputs, y: sys.exit(0)},
        "loss: it cannot take .*SystemExit",
    ),
    "a function that raises": (
        lambda: {"model": lambda: PLACES["layer"]},
        "model: .*<lambda> failed when it was called .*: KeyError: 'layer'",
    ),
    "a function that exits": (
        lambda: {"model": lambda: sys.exit(0)},
        r"sys.exit\(0\) was called",
    ),
    "what makes no module": (lambda: {"model": dict}, "model: <class 'dict'> is no class or function that makes"),
    "a module without values": (lambda: {"model": Net().to("meta")}, "model: body.weight of Net is on the device meta"),
    "a module that cannot be copied": (lambda: {"model": Locked()}, "model: Locked cannot be copied .* model=Net"),
    "a frozen module": (
        lambda: {"model": seeded().requires_grad_(False)},
        "model: Net has no parameter .*: all 4 are frozen",
    ),
    "a module without parameters": (
        lambda: {"model": torch.nn.Identity()},
        "no parameter .*: it has none",
    ),
    "a list of metrics": (lambda: {"metrics": [len]}, "metrics: list is not allowed. Allowed: a dict name → function"),
    "a metric without a name": (lambda: {"metrics": {1: len}}, "metrics: 1 cannot be the name"),
    "a loss class": (
        lambda: {"loss": torch.nn.CrossEntropyLoss},
        r"loss: CrossEntropyLoss is a class, .* loss=CrossEntropyLoss\(",
    ),
    "a metric class": (lambda: {"metrics": {"a": torch.nn.MSELoss}}, r"metrics=\{'a': MSELoss\("),
    "an observer that is none": (
        lambda: {"observer": len},
        "observer: builtin.* has no function note",
    ),
    "an observer class": (lambda: {"observer": raysim.Observer}, r"observer=Observer\(\)"),
    "no data": (
        lambda: {"clients": None, "test": None},
        r"model: a model of your own needs data.* clients=raysim.split\(",
    ),
    "a number of clients of no data": (
        lambda: {"clients": 7, "test": None},
        r"clients: 7 is a number .* clients=7\), or a workload by its name",
    ),
    "no folder": (lambda: {"resume": 5}, "resume: 5 is not allowed"),
    "no option": (lambda: {"momentun": 0.5}, "Did you mean training.momentum"),
    "no method": (lambda: {"method": 5}, "method: 5 is not allowed"),
}


@pytest.mark.parametrize("kind", CASES)
def test_what_is_not_what_it_must_be_is_one_sentence(kind: str, tmp_path: Path) -> None:
    change, words = CASES[kind]
    given: dict[str, Any] = {"model": seeded(), "clients": three_clients(), "test": samples(20, 9)}
    with pytest.raises(raysim.RaysimError, match=words) as refusal:
        raysim.run(**{"method": "fedavg", **QUICK, **given, **change(), "output": str(tmp_path / "run")})
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("form", [lambda: WithBatchNorm(), lambda: WithBatchNorm])
def test_batch_norm_and_dp_sgd_are_refused_before_the_run_has_a_folder(form: Any, tmp_path: Path) -> None:
    private: dict[str, Any] = {"privacy.kind": "dp-sgd", "privacy.noise_multiplier": 1.0}
    with pytest.raises(ConfigError, match="dp-sgd is not possible with this model, whose BatchNorm"):
        raysim.run("fedavg", model=form(), clients=three_clients(), output=str(tmp_path / "runs" / "r"), **private)
    assert not (tmp_path / "runs").exists()  # a run on Ray, the default, has not started it


class WithBatchNorm(torch.nn.Sequential):
    def __init__(self) -> None:
        super().__init__(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 3))


def test_every_error_is_an_error_of_raysim() -> None:
    assert raysim.RaysimError is RaysimError
    assert issubclass(WorkloadError, raysim.RaysimError) and issubclass(ConfigError, raysim.RaysimError)
