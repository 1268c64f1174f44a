"""BatchNorm's tensors lie in the flat buffer wherever those before them end, and cuDNN takes multiples of 16 bytes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from raysim.client_side import worker as worker_module
from raysim.client_side.misaligned_batch_norm import ALIGNMENT, spare_misaligned
from raysim.flat_model import FlatModel, all_names
from tests.small_runs import MakeConfig, worker_of


def network(classes: int) -> nn.Sequential:
    """A convolution with BatchNorm, and a head after which the running means begin."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, classes))


def running_mean(module: nn.Sequential) -> torch.Tensor:
    return module.get_buffer("1.running_mean")


def seen(module: nn.Module, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether cuDNN was allowed in each BatchNorm of a forward pass."""
    allowed: list[bool] = []
    real: Any = torch.batch_norm

    def noted(*arguments: Any) -> Any:
        allowed.append(arguments[-1])
        return real(*arguments)

    monkeypatch.setattr(torch, "batch_norm", noted)
    module(torch.ones(2, 3, 8, 8))
    return allowed


@pytest.mark.parametrize(("classes", "cudnn"), [(8, True), (10, False)])
def test_only_misaligned_layers_leave_cudnn(classes: int, cudnn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten biases end at a multiple of 8 bytes, eight at one of 16."""
    module = network(classes)
    FlatModel(module, all_names(module))
    misaligned = [bool(tensor.data_ptr() % ALIGNMENT) for tensor in module[1].buffers() if tensor.ndim]
    assert misaligned == [not cudnn] * 2
    spare_misaligned(module)
    before = torch.backends.cudnn.enabled
    assert seen(module, monkeypatch) == [cudnn]
    assert torch.backends.cudnn.enabled is before


def test_values_are_the_same_and_copies_go_on_by_themselves() -> None:
    plain, module = network(10), network(10)
    FlatModel(plain, all_names(plain))
    FlatModel(module, all_names(module))
    spare_misaligned(module)
    images = torch.randn(4, 3, 8, 8)
    assert torch.equal(module(images), plain(images))
    assert torch.equal(running_mean(module), running_mean(plain))
    copied = copy.deepcopy(module)
    copied(images)
    assert torch.equal(running_mean(module), running_mean(plain))
    assert not torch.equal(running_mean(copied), running_mean(module))


def test_a_worker_spares_the_models_of_a_gpu(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, spared = worker_of(make_config("run")), list[nn.Module]()
    monkeypatch.setattr(worker_module, "spare_misaligned", spared.append)
    monkeypatch.setattr(worker_module, "FlatModel", lambda module, shared, device: FlatModel(module, shared))
    worker.device = "cuda"
    assert [worker.built(0).module] == spared


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU here")
def test_a_real_gpu_takes_a_step() -> None:
    module = network(10)
    model = FlatModel(module, all_names(module), "cuda")
    spare_misaligned(module)
    module(torch.randn(4, 3, 8, 8, device="cuda")).sum().backward()
    torch.cuda.synchronize()
    assert torch.isfinite(model.buffer).all()
