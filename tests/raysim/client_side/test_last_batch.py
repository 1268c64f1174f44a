"""``training.last_batch`` in whole runs: what every client trains on, and what is refused."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.config.run_config import build
from raysim.errors import ConfigError, RaysimError
from raysim.virtual_time.clock import trained_samples
from tests.own_data import QUICK

SIZES = (13, 11, 4)
"""Of three clients, at mini-batches of 5: 3, 1 and 4 samples are left over or alone."""


def data(inputs: tuple[int, ...] = (6,)) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    draw = np.random.default_rng(0)
    return [(draw.standard_normal((n, *inputs)).astype(np.float32), np.arange(n) % 2) for n in SIZES]


def plain() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def normalized() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))


def headed() -> torch.nn.Module:
    parts = {"body": torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4)), "head": torch.nn.Linear(4, 2)}
    return torch.nn.Sequential(OrderedDict(parts))


def over_maps() -> torch.nn.Module:
    maps = torch.nn.Conv2d(1, 3, 3)
    return torch.nn.Sequential(maps, torch.nn.BatchNorm2d(3), torch.nn.Flatten(), torch.nn.Linear(48, 2))


def steps(tmp_path: Path, model: torch.nn.Module, method: str = "fedavg", **options: Any) -> list[int]:
    """What the clients table says of each client's steps in one local epoch."""
    options = {f"training.{name}": value for name, value in options.items()}
    own = {"training.batch_size": 5, "rounds": 1, "local_epochs": 1, "output": str(tmp_path / "run")}
    clients = data((1, 6, 6)) if isinstance(next(model.children()), torch.nn.Conv2d) else data()
    result = raysim.run(method, model=model, clients=clients, test=[clients[2]] * 3, **{**QUICK, **own, **options})
    return [int(each) for each in result.clients["steps"]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"last_batch": "keep"}, [3, 2, 1]),
        ({"last_batch": "merge"}, [3, 2, 1]),  # 3 of 5 are no less than a quarter
        ({"last_batch": "merge", "merge_below": 0.7}, [2, 2, 1]),
        ({"last_batch": "drop"}, [2, 2, 1]),
        ({}, [3, 2, 1]),
        ({"merge_below": 0.7}, [3, 2, 1]),  # auto is keep here, beside which it is no slip
        ({"batch_size": 1}, list(SIZES)),
    ],
)
def test_steps_of_a_model_without_batch_norm(tmp_path: Path, options: dict[str, Any], expected: list[int]) -> None:
    assert steps(tmp_path, plain(), **options) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"batch_size": 10}, [2, 1, 1]),  # 13 = 10 + 3, and 3 are more than a quarter of 10; 11 joins
        ({"batch_size": 10, "last_batch": "merge", "merge_below": 0.4}, [1, 1, 1]),
        ({"batch_size": 10, "merge_below": 0.4}, [1, 1, 1]),
        ({"batch_size": 12}, [1, 1, 1]),
        ({"batch_size": 9}, [2, 1, 1]),  # 11 = 9 + 2: a quarter of 9 is 2.25
        ({"batch_size": 9, "last_batch": "keep"}, [2, 2, 1]),
    ],
)
def test_batch_norm_has_remainders_merged(tmp_path: Path, options: dict[str, Any], expected: list[int]) -> None:
    assert steps(tmp_path, normalized(), **options) == expected


@pytest.mark.parametrize("method", ["scaffold", "fednova", "fedrad"])
def test_methods_that_divide_by_steps_count_these(tmp_path: Path, method: str) -> None:
    assert steps(tmp_path, normalized(), method, batch_size=9, last_batch="drop") == [1, 1, 1]


def test_both_phases_of_fedrep_are_cut_alike(tmp_path: Path) -> None:
    # Ten epochs of the head and one of the body.
    assert steps(tmp_path / "merge", headed(), "fedrep", batch_size=9) == [11 * 2, 11, 11]
    assert steps(tmp_path / "keep", headed(), "fedrep", batch_size=9, last_batch="keep") == [11 * 2, 11 * 2, 11]


def test_frozen_batch_norm_has_nothing_to_merge(tmp_path: Path) -> None:
    assert steps(tmp_path, normalized(), batch_size=9, freeze_batchnorm=True) == [2, 2, 1]


def test_batches_of_one_sample_are_refused_where_batch_norm_has_one_value(tmp_path: Path) -> None:
    with pytest.raises(RaysimError, match=r"training\.batch_size: 1 is not possible with this model, whose BatchNorm"):
        steps(tmp_path / "a", normalized(), batch_size=1)
    assert not (tmp_path / "a" / "run").exists()
    assert steps(tmp_path / "b", over_maps(), batch_size=1) == list(SIZES)  # 16 values of every channel
    assert steps(tmp_path / "c", normalized(), batch_size=1, freeze_batchnorm=True) == list(SIZES)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [13, 11, 4]),
        ({"training.last_batch": "drop"}, [10, 10, 4]),
        ({"training.steps_per_epoch": 4}, [18, 22, 16]),  # 5 5 3 5, 5 6 5 6 and four times 4
        ({"training.steps_per_epoch": 4, "training.last_batch": "drop"}, [20, 20, 16]),
        ({"training.steps_per_epoch": 4, "privacy.kind": "dp-sgd", "privacy.noise_multiplier": 1.0}, [20, 20, 16]),
        ({"privacy.kind": "dp-sgd", "privacy.noise_multiplier": 1.0}, [15, 15, 4]),  # in the mean 3 · 5, 3 · 5, 4
    ],
)
def test_virtual_time_counts_the_samples_that_are_trained_on(options: dict[str, Any], expected: list[int]) -> None:
    config = build([{"method.name": "fedavg", "training.batch_size": 5} | options])
    assert trained_samples(config, np.array([*SIZES, 0])).tolist() == [*expected, 0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"training.last_batch": "drop", "training.merge_below": 0.5}, "training.merge_below: 0.5 has no effect with"),
        ({"training.last_batch": "keep", "training.merge_below": 0.5}, "training.merge_below: 0.5 has no effect with"),
        (
            {"training.last_batch": "drop", "privacy.kind": "dp-sgd", "privacy.noise_multiplier": 1.0},
            "training.last_batch: drop has nothing left over to act on with privacy.kind dp-sgd",
        ),
    ],
)
def test_options_without_effect_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        build([{"method.name": "fedavg"} | options])
