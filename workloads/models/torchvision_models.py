"""torchvision's networks, cut into body and head, with stems for small images and any number of input channels.

Every network is built with its final number of classes and its last layer then becomes the head, so that values and
names (``body.`` before torchvision's) are torchvision's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import nn

from raysim.workloads._torchvision import models
from raysim.workloads.models.classifier import Classifier

# MobileNetV2's blocks (expansion, channels, repeats, stride) with stride 1 instead of 2 in the second.
SMALL_MOBILENET_BLOCKS = [
    [1, 16, 1, 1],
    [6, 24, 2, 1],
    [6, 32, 3, 2],
    [6, 64, 4, 2],
    [6, 96, 3, 1],
    [6, 160, 3, 2],
    [6, 320, 1, 1],
]


def alexnet(channels: int, classes: int, dropout: float) -> Classifier:
    """torchvision's AlexNet for at least 63x63 pixels; its two dropouts and hidden layers belong to the body."""
    network = models.alexnet(num_classes=classes, dropout=dropout)
    if channels != 3:
        network.features[0] = nn.Conv2d(channels, 64, kernel_size=11, stride=4, padding=2)
    head = network.classifier[-1]
    network.classifier = network.classifier[:-1]
    return Classifier(network, head)


def mobilenet_v2(
    channels: int, classes: int, *, small: bool, width: float, dropout: float, groups: int = 0
) -> Classifier:
    """torchvision's MobileNetV2, with BatchNorm or, of ``groups`` > 0, GroupNorm; its dropout belongs to the body."""
    network = models.MobileNetV2(
        num_classes=classes,
        width_mult=width,
        inverted_residual_setting=SMALL_MOBILENET_BLOCKS if small else None,
        dropout=dropout,
        norm_layer=_norm(groups),
    )
    first = network.features[0][0]
    if small:
        first.stride = (1, 1)
    if channels != 3:
        network.features[0][0] = _convolution(channels, first.out_channels, kernel_size=3, stride=first.stride[0])
    head = network.classifier[1]
    network.classifier = network.classifier[0]
    return Classifier(network, head)


def resnet(name: str, channels: int, classes: int, *, small: bool, groups: int = 0) -> Classifier:
    """torchvision's ``resnet18`` or ``resnet50``, with BatchNorm or, of ``groups`` > 0, GroupNorm."""
    make = {"resnet18": models.resnet18, "resnet50": models.resnet50}[name]
    network = make(num_classes=classes, norm_layer=_norm(groups))
    if small:
        network.conv1 = _convolution(channels, 64, kernel_size=3, stride=1)
        network.maxpool = nn.Identity()
    elif channels != 3:
        network.conv1 = _convolution(channels, 64, kernel_size=7, stride=2)
    head = network.fc
    network.fc = nn.Identity()
    return Classifier(network, head)


def _norm(groups: int) -> Callable[..., nn.Module] | None:
    """torchvision's ``norm_layer``; None is its BatchNorm."""
    return partial(nn.GroupNorm, groups) if groups else None


def _convolution(channels: int, out_channels: int, *, kernel_size: int, stride: int) -> nn.Conv2d:
    """A first convolution initialized the way torchvision does for ResNet and MobileNet."""
    layer = nn.Conv2d(channels, out_channels, kernel_size, stride, padding=kernel_size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer
