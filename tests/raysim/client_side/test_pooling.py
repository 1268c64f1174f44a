"""Max-pooling that keeps its layout: the same bits, in whatever way a gradient is taken."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from raysim.client_side import pooling
from raysim.client_side.pooling import keep_layout
from raysim.flat_model import FlatModel, all_names
from tests.small_runs import LOGISTIC, small_run, worker_of

FLAT, CONVOLUTION = nn.Flatten(), nn.Conv2d(5, 4, 3)


def network(pool: nn.Module, behind: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), pool, copy.deepcopy(behind), nn.Flatten(), nn.LazyLinear(4))


def gradient(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """That of a batch, by all parameters, in a model as clients have it."""
    torch.manual_seed(1)
    module(x)  # which gives its lazy layer its size and values
    model = FlatModel(module, all_names(module))
    model.module.train()
    torch.manual_seed(1)
    nn.functional.cross_entropy(model.module(x), torch.arange(len(x)) % 4).backward()
    return model.gradient.clone()


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.MaxPool2d(3, stride=2, padding=1), nn.MaxPool2d(3, stride=1)])
@pytest.mark.parametrize("behind", [nn.Flatten(), nn.Dropout(0.25), CONVOLUTION], ids=["flatten", "dropout", "conv"])
def test_gradients_have_the_same_bits(pool: nn.Module, behind: nn.Module) -> None:
    x = torch.randn(6, 3, 12, 12).contiguous(memory_format=torch.channels_last)
    plain, kept = network(copy.deepcopy(pool), behind), network(copy.deepcopy(pool), behind)
    keep_layout(kept)
    assert torch.equal(gradient(plain, x), gradient(kept, x))


def test_the_gradient_reaches_pooling_in_its_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    to_last: Callable[[torch.Tensor], torch.Tensor] = pooling._to_channels_last

    def recorded(gradient: torch.Tensor) -> torch.Tensor:
        seen.append(gradient.is_contiguous(memory_format=torch.channels_last))
        return to_last(gradient)

    monkeypatch.setattr(pooling, "_to_channels_last", recorded)
    module = network(nn.MaxPool2d(2), FLAT)
    keep_layout(module)
    gradient(module, torch.randn(6, 3, 12, 12).contiguous(memory_format=torch.channels_last))
    assert seen == [False]  # it came in rows


def test_gradients_of_single_samples_and_copies_of_the_module_still_work() -> None:
    module = network(nn.MaxPool2d(2), FLAT)
    x = torch.randn(6, 3, 12, 12).contiguous(memory_format=torch.channels_last)
    module(x)
    keep_layout(module)
    values: dict[str, torch.Tensor] = dict(module.named_parameters())

    def loss(values: dict[str, torch.Tensor], sample: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = torch.func.functional_call(module, values, (sample[None],))
        return outputs.square().sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(values, x)
    pickle.loads(pickle.dumps(module))(x).square().sum().backward()
    module(x).square().sum().backward()
    whole = module.get_parameter("0.weight").grad
    assert whole is not None
    torch.testing.assert_close(each["0.weight"].sum(0), whole, rtol=1e-4, atol=1e-4)


def test_the_models_of_clients_have_it(tmp_path: Path) -> None:
    worker = worker_of(small_run(tmp_path, LOGISTIC, model__name="cnn"))
    pools = [part for part in worker.model(0).module.modules() if isinstance(part, nn.MaxPool2d)]
    assert pools and all(pool._forward_hooks for pool in pools)
