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
from tests.own_graphs import Net as GraphNet
from tests.own_graphs import graphs
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


class Rescaling(Net):
    """May write to its input."""

    def __init__(self, in_place: bool = True) -> None:
        super().__init__()
        self.in_place = in_place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.mul_(2) if self.in_place else x * 2)


class RescalingGraphs(GraphNet):
    """Writes to its graphs."""

    def forward(self, batch: Any) -> torch.Tensor:
        batch.x.mul_(2)
        return super().forward(batch)


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


@pytest.mark.parametrize("batch_size", [7, 1000])
def test_a_model_may_write_to_its_batch(batch_size: int, tmp_path: Path) -> None:
    """As in a plain loop over a DataLoader, whose batches are copies."""
    given = {"validation_share": 0.2, "test_share": 0.2, "training": {"batch_size": batch_size}}
    networks = [Rescaling(), Rescaling(in_place=False)]
    networks[1].load_state_dict(networks[0].state_dict())
    losses = [
        run(tmp_path / str(number), model=network, **given).rounds["loss"].tolist()
        for number, network in enumerate(networks)
    ]
    assert losses[0] == losses[1]


def test_a_model_that_writes_to_its_graphs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(raysim.RaysimError, match="or a graph that it writes to"):
        run(tmp_path / "run", model=RescalingGraphs(), clients=[graphs(20), graphs(20)])


def test_the_option_has_three_values() -> None:
    with pytest.raises(ConfigError, match=r"engine.repeat_check: 'yes' .* Allowed: given \| always \| never"):
        raysim.run("fedavg", repeat_check="yes")
