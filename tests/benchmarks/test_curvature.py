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


def test_the_page_has_the_table_of_its_rows_and_counts_them() -> None:
    rows = curvature.read(DOCS / "results" / "fedld-curvature.csv")
    page = (DOCS / "fedld.md").read_text(encoding="utf-8")
    assert "\n".join(curvature.table(rows)) in page
    larger = sum(abs(row["curvature"]) > row["random_curvature"] for row in rows)
    negative = sum(row["curvature"] < 0 for row in rows)
    assert f"{larger} of the {len(rows)} axes" in page and f"along {negative} it is negative" in page
    last = [row["curvature"] / row["random_curvature"] for row in rows if row["axis"] == 10]
    assert f"by {min(last):.0f} to {max(last):.0f} times" in page
