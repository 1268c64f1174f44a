"""Dropout from the global generator, beside draws of float64."""

from __future__ import annotations

import pytest
import torch

from raysim.workloads.models.dropout import GeneratorDropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.73, 1e-17])
def test_a_value_is_kept_where_a_draw_is_below_the_share_that_is_kept(rate: float) -> None:
    values = torch.randn(7, 143, requires_grad=True)
    torch.manual_seed(3)
    found = GeneratorDropout(rate)(values)
    following = torch.rand(1)
    torch.manual_seed(3)
    kept = torch.rand(7, 143, dtype=torch.float64) < 1 - rate
    assert torch.equal(found, values * kept.float().div(1 - rate))
    assert torch.equal(following, torch.rand(1)), "the generator goes on from the same place"
    found.sum().backward()
    assert values.grad is not None and torch.equal(values.grad != 0, kept)


def test_draws_follow_the_memory_of_images() -> None:
    values = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    torch.manual_seed(3)
    found = GeneratorDropout(0.5)(values)
    torch.manual_seed(3)
    kept = torch.rand(2, 4, 5, 3, dtype=torch.float64).permute(0, 3, 1, 2) < 0.5
    assert torch.equal(found, 2.0 * kept) and found.stride() == values.stride()


def test_nothing_is_dropped_in_evaluation_and_all_of_it_at_a_rate_of_one() -> None:
    values = torch.randn(50)
    assert torch.equal(GeneratorDropout(0.5).eval()(values), values)
    assert not GeneratorDropout(1.0)(values).any()


def test_within_vmap_each_sample_has_draws_of_its_own() -> None:
    values = torch.ones(40, 30)
    torch.manual_seed(3)
    found = torch.func.vmap(GeneratorDropout(0.5), randomness="different")(values)
    assert set(found.unique().tolist()) == {0.0, 2.0} and len(found.unique(dim=0)) == 40
