"""Max-pooling in fewer passes: the same bits, in whatever way a gradient is taken."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from raysim.client_side import pooling
from raysim.client_side.pooling import spare_passes
from raysim.flat_model import FlatModel, all_names
from tests.small_runs import LOGISTIC, small_run, worker_of

FLAT, CONVOLUTION = nn.Flatten(), nn.Conv2d(5, 4, 3)


def network(pool: nn.Module, behind: nn.Module, relu: nn.Module | None = None) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 5, 3), relu or nn.ReLU(), pool, copy.deepcopy(behind), nn.Flatten(), nn.LazyLinear(4)
    )


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
@pytest.mark.parametrize("relu", [nn.ReLU(), nn.ReLU(inplace=True), nn.GELU()])
def test_gradients_have_the_same_bits(pool: nn.Module, behind: nn.Module, relu: nn.Module) -> None:
    x = torch.randn(6, 3, 12, 12).contiguous(memory_format=torch.channels_last)
    plain, kept = (network(copy.deepcopy(pool), behind, copy.deepcopy(relu)) for _ in range(2))
    spare_passes(kept)
    assert torch.equal(gradient(plain, x), gradient(kept, x))


@pytest.mark.parametrize(("inplace", "expected"), [(True, [False]), (False, [False, True])])
def test_the_gradient_reaches_pooling_in_its_layout(
    inplace: bool, expected: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a ReLU that is computed behind pooling it has its layout before ReLU's own backward pass."""
    seen: list[bool] = []
    to_last: Callable[[torch.Tensor], torch.Tensor] = pooling._to_channels_last

    def recorded(gradient: torch.Tensor) -> torch.Tensor:
        seen.append(gradient.is_contiguous(memory_format=torch.channels_last))
        return to_last(gradient)

    monkeypatch.setattr(pooling, "_to_channels_last", recorded)
    module = network(nn.MaxPool2d(2), FLAT, nn.ReLU(inplace=inplace))
    spare_passes(module)
    gradient(module, torch.randn(6, 3, 12, 12).contiguous(memory_format=torch.channels_last))
    assert seen == expected  # it came in rows


def test_gradients_of_single_samples_and_copies_of_the_module_still_work() -> None:
    module = network(nn.MaxPool2d(2), FLAT)
    x = torch.randn(6, 3, 12, 12).contiguous(memory_format=torch.channels_last)
    module(x)
    spare_passes(module)
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


def pooled(pool: nn.Module, x: torch.Tensor, relu: nn.Module | None = None) -> list[torch.Tensor]:
    """Output and input gradient of ReLU and pooling in a row, as torch has them and as clients do."""
    results = []
    for spared in (False, True):
        module = nn.Sequential(relu or nn.ReLU(), copy.deepcopy(pool))
        if spared:
            spare_passes(module)
        leaf = x.clone().contiguous(memory_format=torch.channels_last).requires_grad_()
        output = module(leaf * 1)
        (output * torch.arange(1, output.numel() + 1).view(output.shape)).sum().backward()
        assert leaf.grad is not None
        results += [output.detach(), leaf.grad]
    return results


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.MaxPool2d(3, stride=2, padding=1), nn.MaxPool2d(3, stride=1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_relu_behind_pooling_has_the_bits_of_relu_before_it(pool: nn.Module, dtype: torch.dtype) -> None:
    """With ties, windows without a positive value, infinities, and not a number."""
    generator = torch.Generator().manual_seed(0)
    values = torch.tensor([-torch.inf, -2.0, -1.0, 0.0, 1.0, 2.0, 2.0, torch.inf])
    x = values[torch.randint(0, len(values), (4, 3, 12, 12), generator=generator)].to(dtype)
    x[0], x[1, 0, :6], x[2, 1, 3, 3] = x[0].clamp(max=0.0), -1.0, torch.nan
    output, gradient, spared, its_gradient = pooled(pool, x)
    for plain, own in ((output, spared), (gradient, its_gradient)):
        plain, own = plain.nan_to_num(7.0), own.nan_to_num(7.0)
        assert torch.equal(plain, own) and torch.equal(plain.signbit(), own.signbit())


def test_relu_changes_places_where_nothing_can_look_between(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    relu = torch.nn.functional.relu

    def recorded(values: torch.Tensor, inplace: bool = False) -> torch.Tensor:
        sizes.append(values.shape[-1])
        return relu(values, inplace)

    monkeypatch.setattr(torch.nn.functional, "relu", recorded)
    hooked = nn.ReLU()
    hooked.register_forward_hook(lambda module, inputs, output: None)
    for module in (nn.ReLU(), nn.ReLU(inplace=True), hooked):
        pooled(nn.MaxPool2d(2), torch.randn(1, 1, 8, 8, generator=torch.Generator().manual_seed(0)), module)
    assert sizes == [8, 4, 8, 8, 8, 8]  # each as torch has it, then as clients do
    whole = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    spare_passes(whole)
    sizes.clear()
    x = torch.full((1, 1, 8, 8), -1.0)
    assert torch.equal(whole[:1](x), torch.zeros_like(x)) and torch.equal(whole[1:](x), torch.full((1, 16), -1.0))
    assert sizes == [8]


def test_the_models_of_clients_have_it(tmp_path: Path) -> None:
    worker = worker_of(small_run(tmp_path, LOGISTIC, model__name="cnn"))
    pools = [part for part in worker.model(0).module.modules() if isinstance(part, nn.MaxPool2d)]
    assert pools and all(pool._forward_hooks for pool in pools)
