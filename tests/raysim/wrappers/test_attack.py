"""Attacks: who is malicious, what is sent, and what the tables say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from raysim.config.sections import Training
from raysim.config.wrappers import Attack
from raysim.errors import ConfigError
from raysim.method import ClientTask
from raysim.simulation import run
from raysim.wrappers.attack import attack_success, forged, malicious, sent
from tests.small_runs import small_run

BASE = {
    "model.name": "logistic",
    "workload.clients": 5,
    "workload.limit": 120,
    "schedule.rounds": 2,
    "training.batch_size": 8,
}


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
    task = ClientTask(0, 1, 2, 1, 0.1, Training())
    assert sent(Attack("sign-flip", strength=2.0), honest[0], task).tolist() == [-2, -10]
    noise = sent(Attack("gaussian", strength=3.0), np.zeros(20_000, np.float32), task)
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


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method__name": "scaffold", "attack__kind": "ipm"}, "attack.kind: ipm needs a method whose server"),
        ({"attack__malicious_share": 0.5}, "attack.malicious_share: 0.5 has no effect"),
        ({"attack__kind": "label-flip", "attack__strength": 2.0}, "attack.strength: 2.0 has no effect"),
        ({"attack__kind": "ipm", "attack__malicious": (5,)}, "5 is no client that takes part. Allowed: .* 0 to 4"),
    ],
)
def test_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        run(small_run(tmp_path, BASE, **options))
