from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from raysim.config.registry import resolve
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.models import MODELS
from raysim.workloads.models.classifier import Classifier, has_batch_norm
from raysim.workloads.models.image_specs import AlexNet, Cnn, Mlp, MobileNet, ResNet18, ResNet50

IMAGE_MODELS = [
    name for name, location in MODELS.items() if location.startswith("raysim.workloads.models.image_specs:")
]


def build(options: Any, *input_shape: int, classes: int = 10) -> Classifier:
    model = options.build(InputSpec(input_shape, classes))
    assert isinstance(model, Classifier)
    return model


def on_meta(options: Any, *input_shape: int, classes: int = 10) -> Classifier:
    """The network without memory for its values: enough for shapes and counts."""
    with torch.device("meta"):
        return build(options, *input_shape, classes=classes)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("options", "shape", "classes", "expected"),
    [
        (resolve("model", "logistic")(), (1, 8, 8), 10, 64 * 10 + 10),
        (Mlp(), (1, 8, 8), 10, 65 * 64 + 65 * 10),
        (Mlp(hidden=(20, 5)), (7,), 3, 8 * 20 + 21 * 5 + 6 * 3),
        (Cnn(), (1, 28, 28), 10, 1_663_370),
        (Cnn(units=2048), (1, 28, 28), 62, 6_603_710),
        (AlexNet(), (3, 224, 224), 1000, 61_100_840),
        (AlexNet(), (3, 32, 32), 10, 4_557_642),
        (MobileNet(), (3, 224, 224), 1000, 3_504_872),
        (MobileNet(), (3, 32, 32), 10, 2_236_682),
        (MobileNet(stem="imagenet"), (3, 32, 32), 10, 2_236_682),
        (ResNet18(), (3, 224, 224), 1000, 11_689_512),
        (ResNet18(), (3, 32, 32), 10, 11_173_962),
        (ResNet18(norm="group"), (3, 32, 32), 10, 11_173_962),
        (ResNet50(), (3, 224, 224), 1000, 25_557_032),
        (ResNet50(), (3, 32, 32), 10, 23_520_842),
    ],
)
def test_parameter_counts(options: Any, shape: tuple[int, ...], classes: int, expected: int) -> None:
    assert count(on_meta(options, *shape, classes=classes)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", IMAGE_MODELS)
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 32, 48), (3, 64, 64), (3, 96, 80), (4, 224, 224)])
def test_names_and_shapes(name: str, shape: tuple[int, int, int]) -> None:
    options = resolve("model", name)()
    if name == "alexnet" and shape[1] == 8:
        with pytest.raises(WorkloadError, match="at least 15x15 pixels"):
            options.build(InputSpec(shape, 10))
        return
    model = on_meta(options, *shape, classes=7)
    inputs = torch.empty(2, *shape, device="meta")
    features: list[torch.Tensor] = []
    model.body.register_forward_hook(lambda module, given, found: features.append(found))
    assert model(inputs).shape == (2, 7)
    assert [found.shape for found in features] == [(2, model.head.in_features)]
    assert [child for child, _ in model.named_children()] == ["body", "head"]
    assert type(model.head) is nn.Linear
    assert {key.split(".")[0] for key in model.state_dict()} <= {"body", "head"}
    assert has_batch_norm(model) == (name in ("mobilenet", "resnet18", "resnet50"))


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_real_values_flow_and_initialization_follows_the_global_seed(name: str) -> None:
    options = resolve("model", name)()
    models = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        models.append(build(options, 1, 16, 16))
    states = [model.state_dict() for model in models]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    assert not torch.equal(states[0]["head.weight"], states[2]["head.weight"])
    inputs = torch.randn(2, 1, 16, 16)
    models[0].eval()
    with torch.no_grad():
        outputs = models[0](inputs)
        assert torch.equal(outputs, models[0].head(models[0].body(inputs)))
    assert outputs.isfinite().all() and not torch.equal(outputs[0], outputs[1])


@pytest.mark.parametrize("name", ["mobilenet", "resnet18", "resnet50"])
@pytest.mark.parametrize(
    ("stem", "side", "last"),
    [("auto", 32, 4), ("auto", 64, 8), ("auto", 96, 3), ("imagenet", 32, 1), ("small", 96, 12)],
)
def test_stems_by_their_last_feature_map(name: str, stem: Any, side: int, last: int) -> None:
    options: Any = resolve("model", name)
    model = on_meta(options(stem=stem), 3, side, side)
    part = model.body.get_submodule("features" if name == "mobilenet" else "layer4")
    sizes: list[torch.Size] = []
    part.register_forward_hook(lambda module, inputs, output: sizes.append(output.shape))
    model(torch.empty(2, 3, side, side, device="meta"))
    assert sizes[0][2:] == (last, last)


@pytest.mark.parametrize("name", ["mobilenet", "resnet18"])
def test_imagenet_stem_has_torchvision_values(name: str) -> None:
    from torchvision import models

    options: Any = resolve("model", name)
    torch.manual_seed(0)
    ours = build(options(stem="imagenet"), 3, 32, 32).eval()
    torch.manual_seed(0)
    theirs = {"mobilenet": models.mobilenet_v2, "resnet18": models.resnet18}[name](num_classes=10).eval()
    inputs = torch.randn(2, 3, 32, 32)
    assert torch.equal(ours(inputs), theirs(inputs))


def test_mobilenet_options_reach_the_network() -> None:
    assert count(on_meta(MobileNet(width=0.5), 3, 32, 32)) < count(on_meta(MobileNet(), 3, 32, 32)) / 2
    for options in (MobileNet(dropout=0.4), AlexNet(dropout=0.4)):
        for shape in ((3, 32, 32), (3, 64, 64)):
            rates = [part.p for part in on_meta(options, *shape).modules() if isinstance(part, nn.Dropout)]
            assert rates and set(rates) == {0.4}


def test_mcmahan_cnn_equals_relu_before_pooling() -> None:
    model = build(Cnn(), 1, 8, 8)
    first, pool, relu, second, _, _, flatten, wide, _ = model.body.children()
    inputs = torch.randn(4, 1, 8, 8)
    printed = wide(flatten(pool(relu(second(pool(relu(first(inputs))))))))
    expected = torch.autograd.grad(model.head(relu(printed)).square().sum(), list(model.parameters()))
    actual = torch.autograd.grad(model(inputs).square().sum(), list(model.parameters()))
    assert all(torch.equal(left, right) for left, right in zip(actual, expected, strict=True))


def test_the_channels_of_the_cnn() -> None:
    # 5·5·3·8 + 8, 5·5·8·16 + 16, 16·8·8·64 + 64, 64·10 + 10
    assert count(on_meta(Cnn(channels=8, units=64), 3, 32, 32)) == 608 + 3216 + 65600 + 650
    assert count(on_meta(Cnn(), 1, 28, 28)) == 1_663_370


@pytest.mark.parametrize(
    ("options", "least"),
    [
        (Cnn(), 4),
        (AlexNet(), 15),
        (MobileNet(), 8),
        (MobileNet(stem="imagenet"), 32),
        (ResNet18(), 8),
        (ResNet50(stem="imagenet"), 28),
    ],
)
def test_least_size_is_named_and_works(options: Any, least: int) -> None:
    model = on_meta(options, 3, least, least)
    assert model(torch.empty(2, 3, least, least, device="meta")).shape == (2, 10)
    with pytest.raises(WorkloadError, match=f"'{options.name}' needs images of at least {least}x{least} pixels"):
        options.build(InputSpec((3, least, least - 1), 10))


@pytest.mark.parametrize("name", ["cnn", "alexnet", "mobilenet", "resnet18", "resnet50"])
def test_no_image(name: str) -> None:
    with pytest.raises(WorkloadError, match=r"\(channels, height, width\).*\(30,\)"):
        resolve("model", name)().build(InputSpec((30,), 10))


@pytest.mark.parametrize("hidden", [0, (), (8, 0), (-1,)])
def test_impossible_hidden_widths(hidden: Any) -> None:
    with pytest.raises(WorkloadError, match="hidden must be"):
        Mlp(hidden=hidden).build(InputSpec((4,), 10))


@pytest.mark.parametrize("stem", ["small", "imagenet"])
@pytest.mark.parametrize("kind", [ResNet18, MobileNet])
def test_group_norm_takes_the_place_of_every_batch_norm(kind: Any, stem: Any) -> None:
    usual, grouped = (on_meta(kind(norm=norm, stem=stem), 3, 32, 32) for norm in ("batch", "group"))
    assert not has_batch_norm(grouped) and not kind(norm="group").batch_norm and kind().batch_norm
    groups = [part.num_groups for part in grouped.modules() if isinstance(part, nn.GroupNorm)]
    assert groups == [2] * sum(isinstance(part, nn.BatchNorm2d) for part in usual.modules())
    assert dict(grouped.named_parameters()).keys() == dict(usual.named_parameters()).keys()
    assert not dict(grouped.named_buffers())


@pytest.mark.parametrize("options", [ResNet18(norm="group", norm_groups=4), MobileNet(norm="group", dropout=0.0)])
def test_a_group_normed_network_looks_at_every_sample_alone(options: Any) -> None:
    model = build(options, 3, 8, 8).train()
    inputs = torch.randn(3, 3, 8, 8)
    torch.testing.assert_close(model(inputs)[:1], model(inputs[:1]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "allowed"),
    [(ResNet18(norm_groups=3), r"1, 2, 4, 8, 16, 32 or 64"), (MobileNet(norm_groups=3), r"Choose 1, 2, 4 or 8\.")],
)
def test_groups_divide_the_channels_of_every_layer(options: Any, allowed: str) -> None:
    with pytest.raises(WorkloadError, match=f"norm_groups = 3 does not divide the channels of each layer.*{allowed}"):
        options.check(InputSpec((3, 32, 32), 10))


@pytest.mark.parametrize("width", [0.1, 0.35, 0.5, 1.0, 1.4])
def test_eight_groups_divide_the_channels_of_mobilenet_of_any_width(width: float) -> None:
    on_meta(MobileNet(norm="group", norm_groups=8, width=width), 3, 32, 32)
