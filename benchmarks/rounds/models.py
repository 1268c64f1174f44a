"""The models of the three workloads, as all systems build them: raysim's own classes, which need torch alone.

They are raysim's, so that a difference between two systems is never one between two models. Each has the same initial
values wherever it is built, and leaves the time of its first training step (:class:`benchmarks.rounds.task.FirstStep`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.rounds.task import FirstStep
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.models.image_specs import Cnn, Mlp, MobileNet

if TYPE_CHECKING:
    from raysim.workloads.models.classifier import Classifier

INPUT = InputSpec((3, 32, 32), 10)


@dataclass(frozen=True)
class MarkedCnn(Cnn):
    """McMahan's CNN."""

    def build(self, inputs: InputSpec) -> Classifier:
        return _marked(super().build, inputs)


@dataclass(frozen=True)
class MarkedMlp(Mlp):
    """One hidden layer of 64 units."""

    def build(self, inputs: InputSpec) -> Classifier:
        return _marked(super().build, inputs)


@dataclass(frozen=True)
class MarkedMobileNet(MobileNet):
    """MobileNetV2."""

    def build(self, inputs: InputSpec) -> Classifier:
        return _marked(super().build, inputs)


MODELS: dict[str, MarkedCnn | MarkedMlp | MarkedMobileNet] = {
    "cnn": MarkedCnn(),
    "mlp": MarkedMlp(),
    "mobilenet": MarkedMobileNet(stem="imagenet"),  # torchvision's network unchanged, also at 32x32
}


def build(name: str) -> Classifier:
    """The model of a workload."""
    return MODELS[name].build(INPUT)


def _marked(build_plain: Callable[[InputSpec], Classifier], inputs: InputSpec) -> Classifier:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = build_plain(inputs)
    FirstStep(module)
    return module
