"""The models of the three workloads, as all systems build them: raysim's own classes, which need torch alone.

They are raysim's, so that a difference between two systems is never one between two models. Each leaves the time of its
first training step (:class:`benchmarks.rounds.task.FirstStep`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.rounds.task import FirstStep
from workloads.data import Task
from workloads.models.options import Cnn, Mlp, MobileNet, ModelOptions

if TYPE_CHECKING:
    from workloads.models.classifier import Classifier

INPUT = Task((3, 32, 32), 10)


@dataclass(frozen=True)
class MarkedCnn(Cnn):
    """McMahan's CNN."""

    def build(self, task: Task) -> Classifier:
        return _marked(super().build(task))


@dataclass(frozen=True)
class MarkedMlp(Mlp):
    """One hidden layer of 64 units."""

    def build(self, task: Task) -> Classifier:
        return _marked(super().build(task))


@dataclass(frozen=True)
class MarkedMobileNet(MobileNet):
    """MobileNetV2."""

    def build(self, task: Task) -> Classifier:
        return _marked(super().build(task))


MODELS: dict[str, ModelOptions] = {
    "cnn": MarkedCnn(),
    "mlp": MarkedMlp(),
    "mobilenet": MarkedMobileNet(stem="imagenet"),  # torchvision's network unchanged, also at 32x32
}


def build(name: str) -> Classifier:
    """The model with the same initial values in every process."""
    import torch

    torch.manual_seed(0)
    return MODELS[name].build(INPUT)


def _marked(module: Classifier) -> Classifier:
    FirstStep(module)
    return module
