"""The curvature of a loss along an axis, and the table of docs/fedld.md."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks import curvature

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_curvature_is_that_of_the_hessian() -> None:
    network = nn.Linear(3, 2).double()
    inputs, targets = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 0, 1])
    start = {name: value.detach() for name, value in network.named_parameters()}
    axis = torch.nn.functional.normalize(torch.arange(8, dtype=torch.float64), dim=0)

    def loss(flat: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(inputs @ flat[:6].view(2, 3).T + flat[6:], targets)

    hessian = torch.autograd.functional.hessian(loss, torch.cat([start["weight"].flatten(), start["bias"]]))
    assert curvature._curvature(axis, network, start, (inputs, targets)) == pytest.approx(float(axis @ hessian @ axis))


def test_the_page_has_the_table_of_its_rows() -> None:
    lines = curvature.table(curvature.read(DOCS / "results" / "fedld-curvature.csv"))
    assert "\n".join(lines) in (DOCS / "fedld.md").read_text(encoding="utf-8")
