"""Options of every image model; light to import, the networks themselves are loaded in ``build``.

``build(task)`` gives a ``raysim.workloads.models.classifier.Classifier`` for inputs [B, C, H, W] =
[B, *task.input_shape] and outputs [B, task.classes]. It draws its initial values from torch's global generator and
never seeds it: the caller seeds first. It raises WorkloadError where the input is not an image or too small for the
model.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from raysim.workloads.errors import WorkloadError
from raysim.workloads.models.model_options import ModelOptions
from raysim.workloads.option_types import Ge, Help, Le, Positive, PositiveInt, ShareBelowOne

if TYPE_CHECKING:
    from raysim.workloads.federated_data import InputSpec
    from raysim.workloads.models.classifier import Classifier

Stem = Literal["auto", "small", "imagenet"]
STEM = Help(
    "first layers: small keeps the resolution of small images, imagenet is torchvision's, "
    "auto is small up to 64x64 pixels"
)
SMALL_STEM_LIMIT = 64
Norm = Literal["batch", "group"]
NORM = Help("normalization: BatchNorm or GroupNorm", "group: Reddi et al. 2021, section 4")


def uses_small_stem(stem: Stem, inputs: InputSpec) -> bool:
    """Whether ``stem`` means the small form here; ``auto`` looks at the longer side of the image."""
    if stem == "auto":
        return max(inputs.input_shape[1:], default=0) <= SMALL_STEM_LIMIT
    return stem == "small"


def check_image(model: str, inputs: InputSpec, least: int) -> None:
    """WorkloadError if the task's inputs are no images (channels, height, width) with sides of at least ``least``."""
    if len(inputs.input_shape) != 3:
        raise WorkloadError(
            f"Model {model!r} needs images of shape (channels, height, width), but the workload's inputs have shape "
            f"{inputs.input_shape}. Choose 'logistic' or 'mlp', which take any shape, or 'cnn1d' for signals."
        )
    _, height, width = inputs.input_shape
    if min(height, width) < least:
        raise WorkloadError(
            f"Model {model!r} needs images of at least {least}x{least} pixels, but the workload's are {height}x{width}."
            f" Choose a smaller model ('cnn' from 4x4, 'mlp' and 'logistic' for any size) or larger images."
        )


def _divisors(number: int) -> str:
    """Its divisors, for people: 1, 2, 4 or 8."""
    *others, last = [str(divisor) for divisor in range(1, number + 1) if number % divisor == 0]
    return f"{', '.join(others)} or {last}"


@dataclass(frozen=True)
class Logistic(ModelOptions):
    """Multinomial logistic regression on the flattened input, which may have any shape; categories are one-hot."""

    name: ClassVar[str] = "logistic"
    parts: ClassVar[tuple[str, ...]] = ("head.",)

    def network(self, inputs: InputSpec) -> Classifier:
        from raysim.workloads.models.mlp_cnn import multilayer_perceptron

        return multilayer_perceptron(inputs.input_shape, (), inputs.classes, inputs.categories)


@dataclass(frozen=True)
class Mlp(ModelOptions):
    """Fully connected layers with ReLU on the flattened input, which may have any shape.

    A categorical column of a table is embedded in half as many dimensions as it has categories, at most ``embedding``.
    """

    name: ClassVar[str] = "mlp"

    hidden: Annotated[
        int | tuple[int, ...], Help("width of the hidden layer, or a list of widths, each at least 1")
    ] = 64
    embedding: Annotated[PositiveInt, Help("largest width of the embedding of a table's categorical column")] = 8

    @property
    def widths(self) -> tuple[int, ...]:
        """Width of every hidden layer."""
        return (self.hidden,) if isinstance(self.hidden, int) else tuple(self.hidden)

    def check_shape(self, inputs: InputSpec) -> None:
        if not self.widths or min(self.widths) < 1:
            raise WorkloadError(
                f"Model 'mlp': hidden must be one width or a list of widths, each at least 1, not {self.hidden!r}."
                " For no hidden layer choose the model 'logistic'."
            )

    def network(self, inputs: InputSpec) -> Classifier:
        from raysim.workloads.models.mlp_cnn import multilayer_perceptron

        return multilayer_perceptron(inputs.input_shape, self.widths, inputs.classes, inputs.categories, self.embedding)


@dataclass(frozen=True)
class Cnn(ModelOptions):
    """The network of McMahan et al. 2017 (section 3) for images of at least 4x4 pixels.

    Two 5x5 convolutions (32 and 64 channels, padding 2), each with 2x2 max-pooling and ReLU, then 512 units with
    ReLU; 1,663,370 parameters on 28x28x1 with 10 classes. Nearly all weights are in the 512 units: 64·(H/4)·(W/4)·512,
    so at 224x224 they are 103 million. With 2048 units it is LEAF's network for FEMNIST (Caldas et al. 2018).
    """

    name: ClassVar[str] = "cnn"

    units: Annotated[PositiveInt, Help("width of the fully connected layer; LEAF's for FEMNIST has 2048")] = 512
    channels: Annotated[PositiveInt, Help("channels of the first convolution; the second has twice as many")] = 32

    def check_shape(self, inputs: InputSpec) -> None:
        check_image(self.name, inputs, least=4)

    def network(self, inputs: InputSpec) -> Classifier:
        from raysim.workloads.models.mlp_cnn import mcmahan_cnn

        return mcmahan_cnn(inputs.input_shape, inputs.classes, self.units, self.channels)


@dataclass(frozen=True)
class AlexNet(ModelOptions):
    """AlexNet: torchvision's from 64x64 pixels, a small form under that (at least 15x15).

    The small form keeps torchvision's channels (64, 192, 384, 256, 256), dropout and order of layers. It departs in:
    first convolution 3x3, stride 2, padding 1 instead of 11x11, stride 4; max-pooling 2x2 instead of 3x3 (stride 2 in
    both); no adaptive pooling; 1024 instead of 4096 units in each of the two hidden fully connected layers.
    """

    name: ClassVar[str] = "alexnet"
    published_head: ClassVar[str] = "classifier.6."

    dropout: Annotated[
        ShareBelowOne, Help("dropout before each hidden fully connected layer", "Krizhevsky et al. 2012")
    ] = 0.5

    def check_shape(self, inputs: InputSpec) -> None:
        check_image(self.name, inputs, least=15)

    def network(self, inputs: InputSpec) -> Classifier:
        if min(inputs.input_shape[1:]) >= 64:
            from raysim.workloads.models.torchvision_models import alexnet

            return alexnet(inputs.input_shape[0], inputs.classes, self.dropout)
        from raysim.workloads.models.mlp_cnn import small_alexnet

        return small_alexnet(inputs.input_shape, inputs.classes, self.dropout)


@dataclass(frozen=True)
class NormalizedNetwork(ModelOptions):
    """The common part of networks that normalize between their layers, by BatchNorm as published or by GroupNorm.

    ``norm="group"`` has GroupNorm (Wu & He 2018) in the place of every BatchNorm: clients then share no statistics of
    their data, and a batch may have one sample. Hsieh et al. 2020 found it better where labels are skewed.
    """

    channel_divisor: ClassVar[int]
    """The largest divisor of the channels of all of its layers; ``norm_groups`` must divide it."""

    norm: Annotated[Norm, NORM] = "batch"
    norm_groups: Annotated[
        int, Ge(1), Le(64), Help("groups of GroupNorm, a divisor of 64; for norm=group", "Reddi et al. 2021")
    ] = 2

    @property
    def batch_norm(self) -> bool:  # type: ignore[override]  # it is only read
        """Whether the network has BatchNorm layers."""
        return self.norm == "batch"

    @property
    def groups(self) -> int:
        """Groups of its GroupNorm layers; 0: it has BatchNorm."""
        return self.norm_groups if self.norm == "group" else 0

    def check_shape(self, inputs: InputSpec) -> None:
        if self.channel_divisor % self.norm_groups:
            raise WorkloadError(
                f"Model {self.name!r}: norm_groups = {self.norm_groups} does not divide the channels of each layer. "
                f"Choose {_divisors(self.channel_divisor)}."
            )


@dataclass(frozen=True)
class MobileNet(NormalizedNetwork):
    """MobileNetV2 (Sandler et al. 2018), torchvision's.

    ``stem="small"``, the usual form for CIFAR, takes stride 1 instead of 2 in the first convolution and in the first
    strided block (24 channels): total stride 8 instead of 32, weights of the same shapes. ``stem="imagenet"`` is
    torchvision's network unchanged, also at 32x32, where its last feature map is 1x1. Least size: 8x8 and 32x32.
    Input channels other than 3 replace the first convolution.
    """

    name: ClassVar[str] = "mobilenet"
    published_head: ClassVar[str] = "classifier.1."
    channel_divisor: ClassVar[int] = 8

    norm: Annotated[Norm, replace(NORM, late=True)] = "batch"
    norm_groups: Annotated[
        int, Ge(1), Le(8), Help("groups of GroupNorm, a divisor of 8; for norm=group", late=True)
    ] = 2
    stem: Annotated[Stem, STEM] = "auto"
    width: Annotated[Positive, Help("multiplier of the channels", "Sandler et al. 2018")] = 1.0
    dropout: Annotated[ShareBelowOne, Help("dropout before the head")] = 0.2

    def check_shape(self, inputs: InputSpec) -> None:
        super().check_shape(inputs)
        check_image(self.name, inputs, least=8 if uses_small_stem(self.stem, inputs) else 32)

    def network(self, inputs: InputSpec) -> Classifier:
        from raysim.workloads.models.torchvision_models import mobilenet_v2

        small, channels = uses_small_stem(self.stem, inputs), inputs.input_shape[0]
        return mobilenet_v2(
            channels, inputs.classes, small=small, width=self.width, dropout=self.dropout, groups=self.groups
        )

    def not_as_published(self, inputs: InputSpec) -> Set[str]:
        return frozenset() if inputs.input_shape[0] == 3 else {"features.0.0.weight"}


@dataclass(frozen=True)
class ResidualNetwork(NormalizedNetwork):
    """The common part of torchvision's ResNet-18 and ResNet-50 (He et al. 2016).

    ``stem="small"``, the usual form for CIFAR, has a first convolution of 3x3 with stride 1 (not 7x7 with stride 2) and
    no max-pooling after it: total stride 8 instead of 32. Least size: 8x8 for it, 28x28 (MedMNIST's) for ``imagenet``,
    whose last feature map is 1x1 up to 32x32.

    ``weights_file`` is a state dict under torchvision's names, such as its ImageNet weights; it is never fetched. The
    head stays as initialized at random, because the classes differ, and so does the first convolution if the stem is
    small or the images have not 3 channels, because its shape differs.
    """

    published_head: ClassVar[str] = "fc."
    channel_divisor: ClassVar[int] = 64

    stem: Annotated[Stem, STEM] = "auto"

    def check_shape(self, inputs: InputSpec) -> None:
        super().check_shape(inputs)
        check_image(self.name, inputs, least=8 if uses_small_stem(self.stem, inputs) else 28)

    def network(self, inputs: InputSpec) -> Classifier:
        from raysim.workloads.models.torchvision_models import resnet

        small, channels = uses_small_stem(self.stem, inputs), inputs.input_shape[0]
        return resnet(self.name, channels, inputs.classes, small=small, groups=self.groups)

    def not_as_published(self, inputs: InputSpec) -> Set[str]:
        same = inputs.input_shape[0] == 3 and not uses_small_stem(self.stem, inputs)
        return frozenset() if same else {"conv1.weight"}


@dataclass(frozen=True)
class ResNet18(ResidualNetwork):
    """ResNet-18: blocks of two 3x3 convolutions; 11.2 million parameters with 10 classes. See ``ResidualNetwork``."""

    name: ClassVar[str] = "resnet18"


@dataclass(frozen=True)
class ResNet50(ResidualNetwork):
    """ResNet-50: bottleneck blocks; 23.5 million parameters with 10 classes. See ``ResidualNetwork``."""

    name: ClassVar[str] = "resnet50"
