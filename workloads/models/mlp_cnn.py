"""Networks written out here: multilayer perceptron, McMahan's CNN for images and signals, and the small AlexNet."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from raysim.workloads.models.classifier import Classifier


def multilayer_perceptron(
    input_shape: tuple[int, ...],
    hidden: Sequence[int],
    classes: int,
    categories: Sequence[int] = (),
    embedding: int = 0,
) -> Classifier:
    """Flatten, then one linear layer with ReLU for each width in ``hidden``; with none it is logistic regression.

    Of a table, whose last columns are ``categories``, these are embedded (see ``TableInput``).
    """
    table = TableInput(categories, embedding) if categories else None
    layers: list[nn.Module] = [table or nn.Flatten()]
    width = math.prod(input_shape) + (table.added if table else 0)
    for next_width in hidden:
        layers += [nn.Linear(width, next_width), nn.ReLU()]
        width = next_width
    body = _TableBody(*layers) if table and hidden else nn.Sequential(*layers)
    return Classifier(body, nn.Linear(width, classes))


class _TableBody(nn.Sequential):
    """Layers of which the first two are a table's input layer: embeddings, and what they and the numbers go into."""

    task_specific = ("0", "1")


class TableInput(nn.Module):
    """Rows of a table [B, F] to [B, F + added]: the numeric columns, then each categorical one as a vector.

    A column of n categories is embedded in (n + 1) // 2 dimensions, at most ``embedding``; with ``embedding`` 0 it
    becomes n columns of which one is 1.
    """

    def __init__(self, categories: Sequence[int], embedding: int) -> None:
        super().__init__()
        self.categories = tuple(categories)
        widths = [min(embedding, (count + 1) // 2) if embedding else count for count in self.categories]
        self.added = sum(widths) - len(widths)
        self.embeddings = nn.ModuleList(
            nn.Embedding(count, width) for count, width in zip(self.categories, widths, strict=True) if embedding
        )

    def forward(self, rows: Tensor) -> Tensor:
        numeric = rows.shape[1] - len(self.categories)
        parts = [rows[:, :numeric]]
        for number, count in enumerate(self.categories):
            codes = rows[:, numeric + number].long().clamp(0, count - 1)
            parts.append(self.embeddings[number](codes) if self.embeddings else one_hot(codes, count).to(rows.dtype))
        return torch.cat(parts, dim=1)


def mcmahan_cnn(shape: tuple[int, ...], classes: int, units: int = 512, width: int = 32) -> Classifier:
    """McMahan et al. 2017: convolutions of ``width`` and twice as many channels (5x5), then ``units``.

    ``shape`` is (C, H, W), or (channels, length) for the same along one axis.
    """
    channels, *sides = shape
    convolution, pooling = (nn.Conv2d, nn.MaxPool2d) if len(sides) == 2 else (nn.Conv1d, nn.MaxPool1d)
    # ReLU after the pooling instead of before it: same values and gradients (ReLU is monotone), a quarter of its work.
    body = nn.Sequential(
        convolution(channels, width, kernel_size=5, padding=2),
        pooling(2),
        nn.ReLU(),
        convolution(width, 2 * width, kernel_size=5, padding=2),
        pooling(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * width * math.prod(side // 4 for side in sides), units),
        nn.ReLU(),
    )
    return Classifier(body, nn.Linear(units, classes))


def small_alexnet(shape: tuple[int, ...], classes: int, dropout: float) -> Classifier:
    """AlexNet for images under 64x64; ``image_specs.AlexNet`` says where it departs from torchvision's."""
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
