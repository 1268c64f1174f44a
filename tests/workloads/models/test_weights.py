from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torchvision import models

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.models.classifier import Classifier
from raysim.workloads.models.image_specs import Mlp, MobileNet, ResNet18, ResNet50

SMALL, FIVE = InputSpec((3, 32, 32), 4), InputSpec((3, 32, 32), 5)


@pytest.fixture(scope="module")
def state() -> dict[str, Tensor]:
    """Values as in torchvision's file of ResNet-18: 1000 classes, running statistics that are not the initial ones."""
    torch.manual_seed(1)
    values: dict[str, Tensor] = models.resnet18().state_dict()
    return {name: torch.randn_like(value) if value.is_floating_point() else value for name, value in values.items()}


def build(options: Any, inputs: InputSpec) -> Classifier:
    torch.manual_seed(2)
    model = options.build(inputs)
    assert isinstance(model, Classifier)
    return model


def written(folder: Path, suffix: str, tensors: Any) -> str:
    file = folder / f"weights{suffix}"
    (torch.save if suffix == ".pth" else save_file)(tensors, file)
    return str(file)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_round_trip(state: dict[str, Tensor], tmp_path: Path, suffix: str) -> None:
    file = written(tmp_path, suffix, state)
    loaded = build(ResNet18(stem="imagenet", weights_file=file), SMALL)
    fresh = build(ResNet18(stem="imagenet"), SMALL)
    body = loaded.body.state_dict()
    assert body and all(torch.equal(body[name], state[name]) for name in body)
    assert torch.equal(loaded.head.weight, fresh.head.weight) and torch.equal(loaded.head.bias, fresh.head.bias)


@pytest.mark.parametrize(
    ("options", "inputs"),
    [
        ({"stem": "auto"}, SMALL),
        ({"stem": "small"}, InputSpec((1, 96, 96), 4)),
        ({"stem": "imagenet"}, InputSpec((1, 32, 32), 4)),
    ],
)
def test_first_convolution_stays_random_where_it_differs(
    state: dict[str, Tensor], tmp_path: Path, options: dict[str, Any], inputs: InputSpec
) -> None:
    loaded = build(ResNet18(**options, weights_file=written(tmp_path, ".pth", state)), inputs).body.state_dict()
    fresh = build(ResNet18(**options), inputs).body.state_dict()
    assert torch.equal(loaded["conv1.weight"], fresh["conv1.weight"])
    assert all(torch.equal(loaded[name], state[name]) for name in loaded if name != "conv1.weight")


def test_older_files_lack_batch_counts(state: dict[str, Tensor], tmp_path: Path) -> None:
    file = written(tmp_path, ".pth", {k: v for k, v in state.items() if "num_batches_tracked" not in k})
    body = build(ResNet18(stem="imagenet", weights_file=file), SMALL).body.state_dict()
    assert torch.equal(body["layer4.1.bn2.running_var"], state["layer4.1.bn2.running_var"])
    assert body["bn1.num_batches_tracked"] == 0


@pytest.mark.parametrize(
    ("network", "change", "message"),
    [
        (
            ResNet18,
            lambda state: {name.replace("layer4", "block4"): value for name, value in state.items()},
            r"missing: layer4.* and \d+ more; unknown: block4",
        ),
        (
            ResNet18,
            lambda state: state | {"layer1.0.conv1.weight": torch.zeros(64, 64, 1, 1)},
            r"layer1.0.conv1.weight is \(64, 64, 1, 1\), not \(64, 64, 3, 3\)",
        ),
        (
            ResNet18,
            lambda state: {name: value for name, value in state.items() if name != "bn1.weight"},
            r"missing: bn1.weight\.",
        ),
        (ResNet18, lambda state: {"state_dict": state}, "names mapped to tensors"),
        (ResNet18, lambda state: list(state.values())[:2], "names mapped to tensors"),
        (ResNet50, lambda state: state, "does not fit this network"),
    ],
)
def test_files_that_do_not_fit(
    state: dict[str, Tensor], tmp_path: Path, network: Any, change: Callable[[Any], Any], message: str
) -> None:
    file = written(tmp_path, ".pth", change(state))
    with pytest.raises(WorkloadError, match=message):
        network(weights_file=file).build(SMALL)


def test_any_model_reads_its_own_names_and_the_head_where_it_fits(tmp_path: Path) -> None:
    trained = build(Mlp(hidden=6), SMALL)
    with torch.no_grad():
        for value in trained.parameters():
            value.uniform_()
    file = written(tmp_path, ".safetensors", trained.state_dict())
    loaded = build(Mlp(hidden=6, weights_file=file), SMALL).state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in trained.state_dict().items())
    other, fresh = (build(options, FIVE).state_dict() for options in (Mlp(hidden=6, weights_file=file), Mlp(hidden=6)))
    assert torch.equal(other["body.1.weight"], trained.state_dict()["body.1.weight"])
    assert torch.equal(other["head.weight"], fresh["head.weight"])
    with pytest.raises(WorkloadError, match=r"of another shape: 1\.weight is \(6, 3072\), not \(7, 3072\)"):
        Mlp(hidden=7, weights_file=file).build(SMALL)
    strange = written(tmp_path, ".pth", trained.state_dict() | {"preference": torch.zeros(6)})
    with pytest.raises(WorkloadError, match=r"unknown: preference\. It must hold"):
        Mlp(hidden=6, weights_file=strange).build(SMALL)


def test_published_weights_of_mobilenet(tmp_path: Path) -> None:
    published = models.mobilenet_v2().state_dict()
    file = written(tmp_path, ".pth", published)
    body = build(MobileNet(weights_file=file), SMALL).body.state_dict()
    assert all(torch.equal(value, published[name]) for name, value in body.items())


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("length", [0, 20, 5000])
def test_damaged_files(tmp_path: Path, suffix: str, length: int) -> None:
    file = Path(written(tmp_path, suffix, {"conv1.weight": torch.zeros(64, 3, 7, 7)}))
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(WorkloadError, match="cannot be read"):
        ResNet18(weights_file=str(file)).build(SMALL)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"There is no weights file .*absent\.pth"):
        ResNet18(weights_file=str(tmp_path / "absent.pth")).build(SMALL)
