from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torchvision import models

from workloads.errors import WorkloadError
from workloads.federated_data import InputSpec
from workloads.models.classifier import Classifier
from workloads.models.image_specs import ResNet18, ResNet50

SMALL = InputSpec((3, 32, 32), 4)


@pytest.fixture(scope="module")
def state() -> dict[str, Tensor]:
    """Values as in torchvision's file of ResNet-18: 1000 classes, running statistics that are not the initial ones."""
    torch.manual_seed(1)
    values: dict[str, Tensor] = models.resnet18().state_dict()
    return {name: torch.randn_like(value) if value.is_floating_point() else value for name, value in values.items()}


def build(options: Any, task: InputSpec) -> Classifier:
    torch.manual_seed(2)
    model = options.build(task)
    assert isinstance(model, Classifier)
    return model


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_round_trip(state: dict[str, Tensor], tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"weights{suffix}"
    if suffix == ".pth":
        torch.save(state, file)
    else:
        save_file(state, file)
    loaded = build(ResNet18(stem="imagenet", weights_file=str(file)), SMALL)
    fresh = build(ResNet18(stem="imagenet"), SMALL)
    body = loaded.body.state_dict()
    assert body and all(torch.equal(body[name], state[name]) for name in body)
    assert torch.equal(loaded.head.weight, fresh.head.weight) and torch.equal(loaded.head.bias, fresh.head.bias)


@pytest.mark.parametrize(
    ("options", "task"),
    [
        ({"stem": "auto"}, SMALL),
        ({"stem": "small"}, InputSpec((1, 96, 96), 4)),
        ({"stem": "imagenet"}, InputSpec((1, 32, 32), 4)),
    ],
)
def test_first_convolution_stays_random_where_it_differs(
    state: dict[str, Tensor], tmp_path: Path, options: dict[str, Any], task: InputSpec
) -> None:
    torch.save(state, tmp_path / "weights.pth")
    loaded = build(ResNet18(**options, weights_file=str(tmp_path / "weights.pth")), task).body.state_dict()
    fresh = build(ResNet18(**options), task).body.state_dict()
    assert torch.equal(loaded["conv1.weight"], fresh["conv1.weight"])
    assert all(torch.equal(loaded[name], state[name]) for name in loaded if name != "conv1.weight")


def test_older_files_lack_batch_counts(state: dict[str, Tensor], tmp_path: Path) -> None:
    torch.save({k: v for k, v in state.items() if "num_batches_tracked" not in k}, tmp_path / "old.pth")
    body = build(ResNet18(stem="imagenet", weights_file=str(tmp_path / "old.pth")), SMALL).body.state_dict()
    assert torch.equal(body["layer4.1.bn2.running_var"], state["layer4.1.bn2.running_var"])
    assert body["bn1.num_batches_tracked"] == 0


def renamed(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.replace("layer4", "block4"): value for name, value in state.items()}


def reshaped(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {**state, "layer1.0.conv1.weight": torch.zeros(64, 64, 1, 1)}


def without(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in state.items() if name != "bn1.weight"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (renamed, r"missing: layer4.* and \d+ more; unknown: block4"),
        (reshaped, r"layer1.0.conv1.weight is \(64, 64, 1, 1\), not \(64, 64, 3, 3\)"),
        (without, r"missing: bn1.weight\."),
        (lambda state: {"state_dict": state}, "names mapped to tensors"),
        (lambda state: list(state.values())[:2], "names mapped to tensors"),
    ],
)
def test_files_that_do_not_fit(
    state: dict[str, Tensor], tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    torch.save(change(state), tmp_path / "weights.pth")
    with pytest.raises(WorkloadError, match=message):
        build(ResNet18(weights_file=str(tmp_path / "weights.pth")), SMALL)


def test_another_network(state: dict[str, Tensor], tmp_path: Path) -> None:
    torch.save(state, tmp_path / "resnet18.pth")
    with pytest.raises(WorkloadError, match="does not fit this network"):
        ResNet50(weights_file=str(tmp_path / "resnet18.pth")).build(SMALL)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("length", [0, 20, 5000])
def test_damaged_files(tmp_path: Path, suffix: str, length: int) -> None:
    file = tmp_path / f"weights{suffix}"
    tensors = {"conv1.weight": torch.zeros(64, 3, 7, 7)}
    if suffix == ".pth":
        torch.save(tensors, file)
    else:
        save_file(tensors, file)
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(WorkloadError, match="cannot be read"):
        ResNet18(weights_file=str(file)).build(SMALL)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"There is no weights file .*absent\.pth"):
        ResNet18(weights_file=str(tmp_path / "absent.pth")).build(SMALL)
