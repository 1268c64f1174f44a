"""The models of workloads of images as classes with options, for raysim's command line; only its process reads this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from benchmarks.rounds import models
from raysim.workloads.models.image_specs import Cnn, Mlp, MobileNet
from raysim.workloads.models.model_options import ModelOptions

if TYPE_CHECKING:
    from raysim.workloads.federated_data import InputSpec
    from raysim.workloads.models.classifier import Classifier


@dataclass(frozen=True)
class MarkedCnn(Cnn):
    """McMahan's CNN."""

    def build(self, inputs: InputSpec) -> Classifier:
        return models.build("cnn")  # type: ignore[return-value]


@dataclass(frozen=True)
class MarkedMlp(Mlp):
    """One hidden layer of 64 units."""

    def build(self, inputs: InputSpec) -> Classifier:
        return models.build("mlp")  # type: ignore[return-value]


@dataclass(frozen=True)
class MarkedMobileNet(MobileNet):
    """MobileNetV2."""

    def build(self, inputs: InputSpec) -> Classifier:
        return models.build("mobilenet")  # type: ignore[return-value]


@dataclass(frozen=True)
class SimpleCnn(ModelOptions):
    """pfl-research's simple_cnn."""

    name: ClassVar[str] = "simple_cnn"

    def network(self, inputs: InputSpec) -> Classifier:
        return models.build("simple_cnn")  # type: ignore[return-value]


@dataclass(frozen=True)
class BlazeCnn(ModelOptions):
    """BlazeFL's network."""

    name: ClassVar[str] = "blazefl_cnn"

    def network(self, inputs: InputSpec) -> Classifier:
        return models.build("blazefl_cnn")  # type: ignore[return-value]


MODELS: dict[str, MarkedCnn | MarkedMlp | MarkedMobileNet | SimpleCnn | BlazeCnn] = {
    "cnn": MarkedCnn(),
    "mlp": MarkedMlp(),
    "mobilenet": MarkedMobileNet(stem="imagenet"),
    "simple_cnn": SimpleCnn(),
    "blazefl_cnn": BlazeCnn(),
}
