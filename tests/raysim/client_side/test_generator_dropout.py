"""Dropout of a user's module."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from raysim.client_side.generator_dropout import draw_from_generator
from raysim.workloads.models.dropout import GeneratorDropout
from tests.small_runs import LOGISTIC, small_run, worker_of


class OwnDropout(nn.Dropout):
    pass


def test_dropout_layers_draw_from_the_generator_wherever_they_are() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.4), nn.Sequential(nn.Dropout(0.2, inplace=True), OwnDropout()))
    draw_from_generator(module)
    assert [type(part) for part in module.modules() if isinstance(part, nn.Dropout)] == [
        GeneratorDropout,
        nn.Dropout,
        OwnDropout,
    ]
    values = torch.randn(50, 2)
    torch.manual_seed(3)
    found = module[1](values)
    torch.manual_seed(3)
    kept = torch.rand(50, 2, dtype=torch.float64) < 1 - 0.4
    assert torch.equal(found, values * kept.float().div(1 - 0.4))
    assert torch.equal(module.eval()[1](values), values)


def test_clients_train_with_them(tmp_path: Path) -> None:
    config = small_run(tmp_path, LOGISTIC, model__name="mobilenet")
    kinds = [type(part) for part in worker_of(config).model(0).module.modules() if isinstance(part, nn.Dropout)]
    assert kinds == [GeneratorDropout]
