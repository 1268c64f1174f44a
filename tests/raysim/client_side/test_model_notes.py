"""Notes about a model of one's own, as a run tells them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import raysim
from raysim.client_side.model_notes import check_gradients_of_samples
from raysim.client_side.worker import Worker
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


class Looks(Net):
    """Its forward looks at a value."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x if x.sum() > 0 else -x)


class Counts(Net):
    """Its forward writes into a buffer."""

    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.seen += x.sum(0)
        return super().forward(x)


def read_out(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """A loss that takes a number out of its tensor."""
    loss = torch.nn.functional.cross_entropy(outputs, labels)
    return loss * max(1.0, loss.item())


@pytest.mark.parametrize(("model", "loss"), [(Looks, None), (Counts, None), (Net, read_out)])
def test_private_training_of_a_model_that_vmap_does_not_follow_is_refused_before_a_round(
    model: type[Net], loss: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    given = {**QUICK, "output": str(folder), "privacy": {"kind": "dp-sgd", "noise_multiplier": 1.0}, "loss": loss}
    said = f"privacy.kind: dp-sgd .* does not follow model {model.__name__} or its loss: .* Leave out "
    with pytest.raises(raysim.RaysimError, match=said):
        raysim.run("fedavg", model=model, clients=three_clients(), **given)
    assert not folder.exists()


class Drops(Net):
    """Its forward draws random numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.nn.functional.dropout(x, 0.5, self.training))


def test_looking_at_the_gradients_of_samples_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []

    def state(worker: Worker) -> tuple[torch.Tensor, ...]:
        return torch.get_rng_state(), worker.model(0).buffer.clone()

    def watched(worker: Worker) -> None:
        before = state(worker)
        check_gradients_of_samples(worker)
        found.extend(map(torch.equal, before, state(worker)))

    monkeypatch.setattr("raysim.driver.drive.check_gradients_of_samples", watched)
    given = {**QUICK, "privacy": {"kind": "dp-sgd", "noise_multiplier": 1.0}, "output": str(tmp_path / "run")}
    raysim.run("fedavg", model=Drops, clients=three_clients(), **given)
    assert found == [True, True]


def notes(folder: Path, method: Any, model: torch.nn.Module, decay: float) -> str:
    """All that a run tells."""
    watch, given = Watch(), {**QUICK, "output": str(folder / "run"), "weight_decay": decay}
    raysim.run(method, model=model, clients=three_clients(), observer=watch, **given)
    return "".join(watch.notes)
