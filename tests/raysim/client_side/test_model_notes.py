"""Notes about a model of one's own, as a run tells them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import raysim
from raysim.methods.fedavg import FedAvg
from tests.own_data import QUICK, Net, three_clients
from tests.watch import Watch

NOTE = "no gradient of the loss reaches"


class Blind(Net):
    """Its body gets no gradient."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = self.body(x)
        scores: torch.Tensor = self.head(features)
        return scores


@dataclass(frozen=True)
class Around(FedAvg):
    """Federated averaging of a module that holds the model under a name of its own."""

    def extend(self, module: torch.nn.Module) -> torch.nn.Module:
        return torch.nn.Sequential(module)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_a_layer_under_no_grad_is_told_of_where_weights_decay(decay: float, tmp_path: Path) -> None:
    told = f"{NOTE} body.weight and 1 more" in notes(tmp_path, "fedavg", Blind(), decay)
    assert told == (decay > 0)


def test_nothing_is_told_of_a_model_that_a_method_calls_by_other_names(tmp_path: Path) -> None:
    assert NOTE not in notes(tmp_path, Around(), Net(), 0.1)


class Wide(torch.nn.Module):
    """It takes 100 numbers, and digits have 64."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = torch.nn.Flatten(), torch.nn.Linear(100, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.body(x))
        return scores


def narrow() -> torch.nn.Module:
    """A model that has five outputs for ten digits."""
    return torch.nn.Sequential(OrderedDict(body=torch.nn.Flatten(), head=torch.nn.Linear(64, 5)))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (narrow, r"model narrow: the model gave logits of shape \(2, 5\) .* classification asks for \(2, 10\)"),
        (Wide, r"model Wide cannot take the inputs of shape \(2, 1, 8, 8\) of client 0: .*Make its first layer"),
    ],
)
def test_a_model_that_does_not_fit_its_workload_is_refused_before_a_round(
    model: Any, said: str, tmp_path: Path
) -> None:
    folder, watch = tmp_path / "run", Watch()
    given = {**QUICK, "output": str(folder)}
    with pytest.raises(raysim.RaysimError, match=said) as found:
        raysim.run(FedAvg(), model=model, workload="digits", observer=watch, **given)
    assert not getattr(found.value, "traceback", "") and not folder.exists()


def notes(folder: Path, method: Any, model: torch.nn.Module, decay: float) -> str:
    """All that a run tells."""
    watch, given = Watch(), {**QUICK, "output": str(folder / "run"), "weight_decay": decay}
    raysim.run(method, model=model, clients=three_clients(), observer=watch, **given)
    return "".join(watch.notes)
