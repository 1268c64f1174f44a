"""Entries that noise and codecs leave alone: statistics of BatchNorm, and parameters that are frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.errors import RaysimError
from raysim.method import SharedTensor, Update
from raysim.methods.fedavg import FedAvg
from raysim.wrappers.trained_entries import frozen_entries, trained_entries, without_frozen
from tests.own_data import QUICK, three_clients

TENSORS = (SharedTensor((2, 1)), SharedTensor((2,), trained=False), SharedTensor((), False, parameter=False))
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "gaussian": {"attack.kind": "gaussian"},
    "alie": {"attack.kind": "alie"},
    "sign": {"compression.kind": "sign"},
    "random-k both ways, fed back": {
        "compression.kind": "random-k",
        "compression.down": "random-k",
        "compression.kept_share": 0.3,
        "compression.error_feedback": True,
    },
    "sign down": {"compression.down": "sign"},
    "central": {"privacy.kind": "central", "privacy.noise_multiplier": 1.0},
    "adaptive central": {"privacy.kind": "central", "privacy.noise_multiplier": 1.0, "privacy.clip_quantile": 0.5},
    "local": {"privacy.kind": "local", "privacy.noise_multiplier": 1.0},
}


def module(*, norm: bool) -> torch.nn.Module:
    """Its first layer is frozen."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        between = [torch.nn.BatchNorm1d(8)] if norm else []
        first = torch.nn.Linear(4, 8).requires_grad_(False)
        return torch.nn.Sequential(first, *between, torch.nn.ReLU(), torch.nn.Linear(8, 3))


def test_by_hand() -> None:
    assert trained_entries(TENSORS).tolist() == [True, True, False, False, False]
    assert frozen_entries(TENSORS).tolist() == [False, False, True, True, False]
    vector = np.array([1, 2, 3, 4, 5], np.float32)
    assert without_frozen(vector, TENSORS).tolist() == [1, 2, 0, 0, 5]
    assert without_frozen(vector[:2], TENSORS[:1]) is not None and vector.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", OPTIONS)
def test_frozen_parameters_stay_put(tmp_path: Path, name: str) -> None:
    """Bit for bit, while the others move."""
    result = raysim.run(
        "fedavg",
        clients=three_clients(),
        model=module(norm=False),
        output=str(tmp_path / "run"),
        **QUICK,
        **OPTIONS[name],
    )
    before, after = (
        module(norm=False).state_dict(),
        raysim.load_model(result.folder, model=module(norm=False)).state_dict(),
    )
    assert all(torch.equal(before[key], after[key]) for key in ("0.weight", "0.bias"))
    assert not torch.equal(before["2.weight"], after["2.weight"])


@pytest.mark.parametrize("way", ["kind", "down"])
@pytest.mark.parametrize("codec", ["random-k", "sign", "int4"])
def test_variances_stay_positive(tmp_path: Path, codec: str, way: str) -> None:
    """A codec that also had BatchNorm's statistics made a variance negative, and the loss NaN."""
    given: dict[str, Any] = {
        f"compression.{way}": codec,
        **({"compression.kept_share": 0.2} if codec == "random-k" else {}),
    }
    result = raysim.run(
        "fedavg", clients=three_clients(), model=module(norm=True), output=str(tmp_path / "run"), **QUICK, **given
    )
    trained = raysim.load_model(result.folder, model=module(norm=True))
    assert float(trained.state_dict()["1.running_var"].min()) > 0
    assert np.isfinite(result.rounds["loss"]).all()


def test_what_moves_frozen_parameters_by_hand_is_refused(tmp_path: Path) -> None:
    """A wrapper would undo it without a word."""

    @dataclass(frozen=True)
    class Moves(FedAvg):
        def train(self, model: Any, data: Any, message: Any, state: Any, task: Any) -> tuple[Update, None]:
            update, after = super().train(model, data, message, state, task)
            return replace(update, delta=update.delta + np.float32(1)), after

    given: dict[str, Any] = {"clients": three_clients(), "model": module(norm=False), **QUICK}
    raysim.run(Moves(), output=str(tmp_path / "plain"), **given)
    with pytest.raises(RaysimError, match="train has changed parameters that are frozen"):
        raysim.run(Moves(), output=str(tmp_path / "coded"), **given | {"compression.kind": "int8"})


def test_the_global_head_of_fedcp_is_no_frozen_parameter(tmp_path: Path) -> None:
    """No optimizer moves it, but clients send it: it is coded, and has the client's noise."""
    noise: dict[str, Any] = {"privacy.kind": "local", "privacy.noise_multiplier": 1.0, "compression.kind": "int8"}
    options: dict[str, Any] = {"model": "mlp", "workload": "digits", "clients": 3, "workload.limit": 90, "rounds": 2}
    quick: dict[str, Any] = {"pictures": False, "engine": {"backend": "inline"}}
    raysim.run("fedcp", output=str(tmp_path / "run"), **options, **quick, **noise)
