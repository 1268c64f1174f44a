"""The backdoor: its trigger, what malicious clients train with, and how its success is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.config.sections import Training
from raysim.config.wrappers import Attack
from raysim.errors import ConfigError
from raysim.method import ClientTask
from raysim.simulation import run
from raysim.wrappers.attack import sent
from raysim.wrappers.backdoor import Trigger, poisoned, trigger_of, triggered
from tests.fingerprint import fingerprint
from tests.small_runs import small_run, worker_of
from workloads.federated_data import NO_SAMPLES, Batch, ClientData

TRIGGER = Trigger(2, (9.0,), target=1)
BASE = {
    "model.name": "logistic",
    "workload.clients": 5,
    "workload.limit": 200,
    "schedule.rounds": 4,
    "training.batch_size": 8,
    "training.learning_rate": 0.05,
    "attack.kind": "backdoor",
    "attack.malicious": (1, 4),
    "attack.target_label": 3,
}


@dataclass
class Given:
    """Samples [N, 1, 3, 3] of zeros."""

    labels: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, batch_size: int, generator: object = None) -> Iterator[Batch]:
        for start in range(0, len(self), batch_size):
            labels = torch.tensor(self.labels[start : start + batch_size])
            yield Batch(torch.zeros(len(labels), 1, 3, 3), labels)


def test_what_malicious_clients_train_with() -> None:
    """The first two of three, rounded up from half, have the square and its label; what they send is scaled."""
    data = poisoned(ClientData(0, "", Given((0, 2, 0)), NO_SAMPLES), TRIGGER, 0.5)
    (batch,) = data.train.batches(3)
    square = [[0, 0, 0], [0, 9, 9], [0, 9, 9]]
    assert batch.x[:, 0].tolist() == [square, square, [[0] * 3] * 3]
    assert batch.y.tolist() == [1, 1, 0] and len(data.train) == 3
    task = ClientTask(0, 1, 2, 1, 0.1, Training())
    update = sent(Attack("backdoor", strength=5.0), np.array([1, -2], np.float32), task)
    assert update.tolist() == [5, -10]


def test_success_counts_samples_of_other_classes() -> None:
    """A model that gives label 1 to the square alone: two of two; without looking at it: one class is never 1."""

    class Looks(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            seen = x[:, 0, 2, 2] > 0
            return torch.stack([torch.full_like(seen, 0.5, dtype=torch.float32), seen.float()], dim=1)

    class Never(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.tensor([[1.0, 0.0]]).repeat(len(x), 1)

    samples = Given((0, 1, 1, 0, 1))
    found = triggered(Looks(), samples, TRIGGER, 2, 2)
    assert (found.samples, found.accuracy) == (2, 1.0)
    assert triggered(Never(), samples, TRIGGER, 2, 2).accuracy == 0


def test_white_is_the_largest_pixel(tmp_path: Path) -> None:
    """Of digits, whose brightest pixel is 255."""
    config = small_run(tmp_path, BASE)
    federation = worker_of(config).federation
    trigger = trigger_of(config.attack, federation)
    assert trigger is not None and (trigger.size, trigger.target) == (3, 3)
    brightest = max(float(batch.x.max()) for batch in federation.client(0, "cpu").train.batches(50))
    assert trigger.white == pytest.approx((brightest,))


def test_the_model_learns_it(tmp_path: Path) -> None:
    """Of all clients, and with replacement by a factor; honest clients' model is as good as ever without the square."""
    attacked = run(small_run(tmp_path / "attacked", BASE, attack__strength=4.0))
    success = attacked.rounds["attack_success"].tolist()
    assert success[-1] > 0.9 and attacked.rounds["accuracy"].iloc[-1] > 0.3
    later = run(small_run(tmp_path / "later", BASE, attack__from_round=4)).rounds["attack_success"].tolist()
    assert later[2] < 0.3 < later[3]
    assert set(attacked.clients["malicious"]) == {0.0, 1.0} and attacked.clients["attack_success"].max() <= 1
    again = run(small_run(tmp_path / "again", BASE, attack__strength=4.0, engine__block_size=2))
    assert fingerprint(again.folder) == fingerprint(attacked.folder)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"attack__target_label": 10}, "attack.target_label: 10 is no class of .*Allowed: 0 to 9"),
        ({"attack__patch": 8}, "attack.patch: 8 pixels would cover .*Allowed: 1 to 7"),
        ({"attack__kind": "ipm"}, "attack.target_label: 3 has no effect with attack.kind ipm.*to backdoor"),
    ],
)
def test_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        run(small_run(tmp_path, BASE, **options))


def test_own_arrays_are_refused(tmp_path: Path) -> None:
    data = [(np.zeros((4, 1, 8, 8), np.float32), np.arange(4))] * 2
    options: dict[str, Any] = {"attack.kind": "backdoor", "engine.backend": "inline", "output": str(tmp_path / "run")}
    with pytest.raises(ConfigError, match="backdoor needs images with a known largest value"):
        raysim.run("fedavg", model="cnn", clients=data, **options)
