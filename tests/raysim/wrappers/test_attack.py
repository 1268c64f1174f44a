"""Attacks: who is malicious, what they train with and send, and what the tables say of it."""

from __future__ import annotations

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
from raysim.wrappers.attack import Trigger, attack_success, forged, malicious, poisoned, sent, trigger_of, triggered
from tests.fingerprint import fingerprint
from tests.small_runs import small_run, worker_of
from workloads.array_samples import ArraySamples
from workloads.federated_data import NO_SAMPLES, ClientData

BASE = {
    "model.name": "logistic",
    "workload.clients": 5,
    "workload.limit": 120,
    "schedule.rounds": 2,
    "training.batch_size": 8,
}
BACKDOOR = BASE | {
    "workload.limit": 200,
    "schedule.rounds": 4,
    "training.learning_rate": 0.05,
    "attack.kind": "backdoor",
    "attack.malicious": (1, 4),
    "attack.target_label": 3,
}
TRIGGER = Trigger(2, (9.0,), target=1)
TASK = ClientTask(0, 1, 2, 1, 0.1, Training())


def test_who_is_malicious() -> None:
    assert malicious(Attack("ipm", malicious=(1, 3)), 0, 5) == {1, 3}
    drawn = malicious(Attack("ipm", malicious_share=0.29), 7, 100)
    assert len(drawn) == 29 and drawn == malicious(Attack("ipm", malicious_share=0.29), 7, 100)
    assert drawn != malicious(Attack("ipm", malicious_share=0.29), 8, 100)
    assert malicious(Attack(), 0, 5) == frozenset()


def test_what_is_sent() -> None:
    honest = [np.array(pair, np.float32) for pair in ((1, 5), (3, 5), (5, 5))]
    assert forged(Attack("ipm"), honest, 2).tolist() == [-1.5, -2.5]
    # μ = (3, 5), σ = (√(8/3), 0).
    assert forged(Attack("alie", strength=1.5), honest, 2).tolist() == pytest.approx([3 - 1.5 * (8 / 3) ** 0.5, 5])
    # n = 50, f = 24: s = 2, Φ(z) = 24 / 26, z = 1.4261 (Baruch et al., section 4 counts in the same way).
    spread = [np.array([sign], np.float32) for sign in (-1, 1)] * 13
    assert forged(Attack("alie"), spread, 24).tolist() == pytest.approx([-1.4261], abs=1e-4)
    assert sent(Attack("sign-flip", strength=2.0), honest[0], TASK).tolist() == [-2, -10]
    assert sent(Attack("backdoor", strength=5.0), np.array([1, -2], np.float32), TASK).tolist() == [5, -10]
    noise = sent(Attack("gaussian", strength=3.0), np.zeros(20_000, np.float32), TASK)
    assert float(noise.std()) == pytest.approx(3, rel=0.02)


def test_success_is_the_next_label() -> None:
    outputs = torch.eye(3)  # predicts 0, 1, 2
    assert attack_success(outputs, torch.tensor([2, 0, 2])).tolist() == [1, 1, 0]


@pytest.mark.parametrize("kind", ["label-flip", "sign-flip", "alie"])
def test_tables(tmp_path: Path, kind: str) -> None:
    """Rounds before the attack are as without it; then the model is worse, and the tables say who attacked."""
    options: dict[str, Any] = {"attack__malicious": (1, 4), "attack__from_round": 2, "attack__kind": kind}
    options |= {"attack__strength": 5.0} if kind != "label-flip" else {}
    plain, attacked = run(small_run(tmp_path / "plain", BASE)), run(small_run(tmp_path / "attacked", BASE, **options))
    losses = attacked.rounds["loss"].tolist()
    assert losses[0] == pytest.approx(plain.rounds["loss"][0], rel=1e-5) and losses[1] > plain.rounds["loss"][1]
    assert attacked.clients["malicious"].tolist() == [0] * 5 + [0, 1, 0, 0, 1]
    if kind == "label-flip":
        success = attacked.rounds["attack_success"].tolist()
        assert success[1] > success[0]
        everyone = BASE | {"attack.malicious": (0, 1, 2, 3, 4), "attack.kind": "label-flip", "schedule.rounds": 8}
        last = run(small_run(tmp_path / "everyone", everyone)).rounds.iloc[-1]
        assert last["attack_success"] > 0.5 > last["accuracy"]


def images(*labels: int) -> ArraySamples:
    """Samples [N, 1, 3, 3] of zeros."""
    return ArraySamples(np.zeros((len(labels), 1, 3, 3), np.float32), np.array(labels), "cpu")


def test_what_malicious_clients_train_with() -> None:
    """The first two of three, rounded up from half, have the square and its label."""
    attack = Attack("backdoor", poisoned_share=0.5)
    data = poisoned(attack, ClientData(0, "", images(0, 2, 0), NO_SAMPLES), 3, TRIGGER)
    (batch,) = data.train.batches(3)
    square = [[0, 0, 0], [0, 9, 9], [0, 9, 9]]
    assert batch.x[:, 0].tolist() == [square, square, [[0] * 3] * 3]
    assert batch.y.tolist() == [1, 1, 0] and len(data.train) == 3


def test_success_counts_samples_of_other_classes() -> None:
    """A model that gives label 1 to the square alone: two of two; without looking at it: one class is never 1."""

    class Looks(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            seen = x[:, 0, 2, 2] > 0
            return torch.stack([torch.full_like(seen, 0.5, dtype=torch.float32), seen.float()], dim=1)

    class Never(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.tensor([[1.0, 0.0]]).repeat(len(x), 1)

    samples = images(0, 1, 1, 0, 1)
    found = triggered(Looks(), samples, TRIGGER, 2, 2)
    assert (found.samples, found.accuracy) == (2, 1.0)
    assert triggered(Never(), samples, TRIGGER, 2, 2).accuracy == 0


def test_white_is_the_largest_pixel(tmp_path: Path) -> None:
    """Of digits, whose brightest pixel is 255."""
    config = small_run(tmp_path, BACKDOOR)
    federation = worker_of(config).federation
    trigger = trigger_of(config.attack, federation)
    assert trigger is not None and (trigger.size, trigger.target) == (3, 3)
    brightest = max(float(batch.x.max()) for batch in federation.client(0, "cpu").train.batches(50))
    assert trigger.white == pytest.approx((brightest,))


def test_the_model_learns_it(tmp_path: Path) -> None:
    """Of all clients, and with replacement by a factor; honest clients' model is as good as ever without the square."""
    attacked = run(small_run(tmp_path / "attacked", BACKDOOR, attack__strength=4.0))
    success = attacked.rounds["attack_success"].tolist()
    assert success[-1] > 0.9 and attacked.rounds["accuracy"].iloc[-1] > 0.3
    later = run(small_run(tmp_path / "later", BACKDOOR, attack__from_round=4)).rounds["attack_success"].tolist()
    assert later[2] < 0.3 < later[3]
    assert set(attacked.clients["malicious"]) == {0.0, 1.0} and attacked.clients["attack_success"].max() <= 1
    again = run(small_run(tmp_path / "again", BACKDOOR, attack__strength=4.0, engine__block_size=2))
    assert fingerprint(again.folder) == fingerprint(attacked.folder)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method__name": "scaffold", "attack__kind": "ipm"}, "attack.kind: ipm needs a method whose server"),
        ({"attack__malicious_share": 0.5}, "attack.malicious_share: 0.5 has no effect"),
        ({"attack__kind": "label-flip", "attack__strength": 2.0}, "attack.strength: 2.0 has no effect"),
        ({"attack__kind": "ipm", "attack__malicious": (5,)}, "5 is no client that takes part. Allowed: .* 0 to 4"),
        (BACKDOOR | {"attack.target_label": 10}, "attack.target_label: 10 is no class of .*Allowed: 0 to 9"),
        (BACKDOOR | {"attack.patch": 8}, "attack.patch: 8 pixels would cover .*Allowed: 1 to 7"),
        (BACKDOOR | {"attack.kind": "ipm"}, "attack.target_label: 3 has no effect with attack.kind ipm.*to backdoor"),
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
