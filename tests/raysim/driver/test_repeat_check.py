"""Code of a user's own that gives other bits the second time is found before the first round."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.errors import ConfigError
from tests.own_data import QUICK, Net, seeded, three_clients
from tests.watch import Watch


class Timed(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * (1 + time.perf_counter_ns() % 997 / 1000)


class Counting(Net):
    calls = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().forward(x) * self.calls


OWN = np.random.default_rng(0)
ONES = itertools.count()


def noisy_loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(outputs, labels) * float(OWN.random())


def counted(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.tensor(float(next(ONES)))


def run(folder: Path, **given: Any) -> Any:
    return raysim.run("fedavg", **{"model": seeded(), "clients": three_clients(), **QUICK, **given}, output=str(folder))


@pytest.mark.parametrize(
    ("given", "tensor"),
    [
        ({"model": Timed()}, "body.weight"),
        ({"model": Counting()}, "body.weight"),
        ({"loss": noisy_loss}, "body.weight"),
        ({"metrics": {"mine": counted}}, "mine on test samples"),
    ],
)
def test_what_differs_is_one_sentence_with_client_and_tensor(given: Any, tensor: str, tmp_path: Path) -> None:
    with pytest.raises(raysim.RaysimError) as refusal:
        run(tmp_path / "run", **given)
    assert f"client 1 was trained and judged twice from the same values, and {tensor} differed by" in str(refusal.value)
    assert "\n" not in str(refusal.value) and not (tmp_path / "run").exists()
    assert len(run(tmp_path / "run", **given, engine=QUICK["engine"] | {"repeat_check": "never"}).rounds) == 3


def test_it_is_told_and_only_where_code_is_given_or_it_is_asked_for(tmp_path: Path) -> None:
    def notes(name: str, **more: Any) -> str:
        watch = Watch()
        settings = {**QUICK, "engine": {**QUICK["engine"], **more}}
        raysim.run(
            "fedavg", model="mlp", clients=three_clients(), observer=watch, output=str(tmp_path / name), **settings
        )
        return "".join(watch.notes)

    assert "twice" not in notes("named")
    assert "client 1 was trained twice with the same bits, in " in notes("asked", repeat_check="always")
    watch = Watch()
    run(tmp_path / "given", observer=watch)
    assert "client 1 was trained twice with the same bits" in "".join(watch.notes)


def test_it_changes_no_bit(tmp_path: Path) -> None:
    checked, unchecked = (
        run(tmp_path / each, engine=QUICK["engine"] | {"repeat_check": each}) for each in ("given", "never")
    )
    assert checked.rounds["loss"].tolist() == unchecked.rounds["loss"].tolist()


def test_the_option_has_three_values() -> None:
    with pytest.raises(ConfigError, match=r"engine.repeat_check: 'yes' .* Allowed: given \| always \| never"):
        raysim.run("fedavg", repeat_check="yes")
