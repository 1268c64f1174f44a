"""Networks written out here: multilayer perceptron, McMahan's CNN and the small AlexNet."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from workloads.models.classifier import Classifier


def multilayer_perceptron(input_shape: tuple[int, ...], hidden: Sequence[int], classes: int) -> Classifier:
    """Flatten, then one linear layer with ReLU for each width in `hidden`; with none it is logistic regression."""
    layers: list[nn.Module] = [nn.Flatten()]
    width = math.prod(input_shape)
    for next_width in hidden:
        layers += [nn.Linear(width, next_width), nn.ReLU()]
        width = next_width
    return Classifier(nn.Sequential(*layers), nn.Linear(width, classes))


def mcmahan_cnn(shape: tuple[int, int, int], classes: int) -> Classifier:
    """McMahan et al. 2017: convolutions of 32 and 64 channels (5x5), 512 units; `shape` is (C, H, W)."""
    channels, height, width = shape
    # ReLU after the pooling instead of before it: same values and gradients (ReLU is monotone), a quarter of its work.
    body = nn.Sequential(
        nn.Conv2d(channels, 32, kernel_size=5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, kernel_size=5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * (height // 4) * (width // 4), 512),
        nn.ReLU(),
    )
    return Classifier(body, nn.Linear(512, classes))


def small_alexnet(shape: tuple[int, int, int], classes: int, dropout: float) -> Classifier:
    """AlexNet for images under 64x64; `image_specs.AlexNet` says where it departs from torchvision's."""
    channels, height, width = shape

    def side(pixels: int) -> int:
        return (pixels + 1) // 2 // 8  # a convolution of stride 2 that rounds up, three poolings that round down

    body = nn.Sequential(
        nn.Conv2d(channels, 64, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 192, kernel_size=5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(192, 384, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(384, 256, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(256, 256, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(256 * side(height) * side(width), 1024),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(1024, 1024),
        nn.ReLU(),
    )
    return Classifier(body, nn.Linear(1024, classes))
