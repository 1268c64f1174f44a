"""Python's and NumPy's global generators in code of a user's own: seeded by the run, and left as they were."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim import seeds
from tests.own_data import QUICK, Items, Net, samples, seeded, three_clients


class Noisy(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        drawn: float = np.random.rand() + random.random()
        return torch.mul(super().forward(x), 1 + 0.1 * drawn)


def made() -> torch.nn.Module:
    net = seeded()
    with torch.no_grad():
        net.head.bias.add_(float(np.random.rand()) + random.random())
    return net


def noisy_loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(outputs, labels) * (float(np.random.rand()) + random.random())


def noisy_metric(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return outputs.sum(dim=1) * float(np.random.rand()) + random.random() + torch.rand(())


class Once(Items):
    """Draws an item when it is first read, so that reading it again tells nothing."""

    def __init__(self, x: Any, y: Any) -> None:
        super().__init__(x, y)
        self.read: dict[int, Any] = {}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        x, y = super().__getitem__(index)
        return self.read.setdefault(index, x + np.float32(np.random.rand() + random.random())), y


FORMS: dict[str, Any] = {
    "module": lambda: {"model": Noisy()},
    "function": lambda: {"model": made},
    "loss": lambda: {"loss": noisy_loss},
    "metric": lambda: {"metrics": {"mine": noisy_metric}},
    "Dataset": lambda: {"clients": [Once(*samples(40)), Once(*samples(30, 1))]},
    "split": lambda: {"clients": raysim.split(Once(*samples(90)), clients=3, partition="iid")},
}


@pytest.mark.parametrize("form", FORMS)
def test_two_runs_give_the_same_bits_and_leave_the_streams_as_they_were(form: str, tmp_path: Path) -> None:
    found = []
    for number in range(2):
        torch.manual_seed(0)  # of what the forms themselves begin with
        given = FORMS[form]() if form != "split" else {}
        random.seed(number), np.random.seed(number), torch.manual_seed(number)
        before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]
        given = given or FORMS[form]()
        run = {"model": seeded(), "clients": three_clients(), **QUICK, **given}
        found.append(raysim.run("fedavg", **run, output=str(tmp_path / f"{number}")).rounds)
        after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]
        assert after == before
    columns = [name for name in found[0].columns if "second" not in name and name != "slot_utilization"]
    assert found[0][columns].equals(found[1][columns])


def test_clients_and_rounds_draw_other_numbers(tmp_path: Path) -> None:
    drawn: list[float] = []

    def loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        drawn.append(np.random.rand())
        return torch.nn.functional.cross_entropy(outputs, labels)

    settings = QUICK | {"engine": QUICK["engine"] | {"repeat_check": "never"}, "evaluation.every": 3}
    raysim.run("fedavg", model=seeded(), clients=three_clients(), loss=loss, output=str(tmp_path / "run"), **settings)
    assert len(set(drawn)) > len(three_clients()) * QUICK["rounds"]


def test_streams_are_kept_with_and_without_a_seed() -> None:
    with seeds.kept_streams():
        random.seed(1), np.random.seed(1), torch.manual_seed(1)
        before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]
        drawn = []
        for _ in range(2):
            with seeds.kept_streams(2**40 + 7):
                drawn.append((random.random(), np.random.rand(), torch.rand(()).item()))
        assert drawn[0] == drawn[1]
        after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]
        assert before == after


# -- code that would end the program --------------------------------------------------------------------------------


class Leaving(raysim.Observer):
    def round_finished(self, row: Any) -> None:
        sys.exit(0)


class LeavesInTraining(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            sys.exit(0)
        return super().forward(x)


class LeavesAtOnce(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            os._exit(0)
        return super().forward(x)


class LeavesInEvaluation:
    """A metric that leaves once it is asked for more than the two samples of the check before a run."""

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return outputs.sum(dim=1) if len(labels) == 2 else sys.exit(0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"observer": Leaving()}, r"observer Leaving.round_finished: SystemExit: sys.exit\(0\) was called"),
        ({"model": LeavesInTraining()}, r"client 0, round 1, stage train: SystemExit: sys.exit\(0\) was called"),
        ({"model": LeavesAtOnce()}, r"client 0, round 1, stage train: SystemExit: os._exit\(0\) was called"),
        ({"metrics": {"mine": LeavesInEvaluation()}}, r"round 1, evaluate .*: SystemExit: sys.exit\(0\) was called"),
    ],
)
def test_leaving_is_an_error_of_who_does_it(given: Any, words: str, tmp_path: Path) -> None:
    run = {"model": seeded(), "clients": three_clients(), **QUICK, **given}
    with pytest.raises(raysim.RaysimError, match=words):
        raysim.run("fedavg", **run, output=str(tmp_path / "run"))


def test_an_observer_that_raises_is_named(tmp_path: Path) -> None:
    class Failing(raysim.Observer):
        def clients_finished(self, rows: Any) -> None:
            raise ValueError("no disk")

    given: dict[str, Any] = {"model": seeded(), "clients": three_clients(), **QUICK}
    with pytest.raises(raysim.RaysimError, match=r"observer Failing.clients_finished: ValueError: no disk"):
        raysim.run("fedavg", observer=Failing(), output=str(tmp_path / "run"), **given)
