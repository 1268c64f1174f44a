"""The models of the workloads, as all systems build them: networks of torch alone, of P4 PyTorch Geometric's layers.

W1 to W3 have raysim's own networks, P2 to P4 are written here as a user would: a difference between two systems is
never one between two models. Each has the same initial values wherever it is built, and leaves the time of its first
training step (:class:`benchmarks.rounds.task.FirstStep`). Nothing here may import more than torch, torchvision and
PyTorch Geometric, which the environments of the other systems have (tests/benchmarks/test_foreign_imports.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.rounds.task import FirstStep

if TYPE_CHECKING:
    from torch import nn

IMAGE = (3, 32, 32)
CLASSES = 10
CHARACTERS = 64
"""Characters of P3, whose samples are made up."""
LENGTH = 80
NODE_LABELS = 37
"""Width of NCI1's one-hot node labels."""
GRAPH_CLASSES = 2
BUILDERS: dict[str, Callable[[], nn.Module]] = {}
"""Every model by its name."""


def build(name: str) -> nn.Module:
    """The model of a workload."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = BUILDERS[name]()
    FirstStep(module)
    return module


def _builder(build_plain: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return BUILDERS.setdefault(build_plain.__name__, build_plain)


@_builder
def cnn() -> nn.Module:
    """McMahan's CNN."""
    from raysim.workloads.models.mlp_cnn import mcmahan_cnn

    return mcmahan_cnn(IMAGE, CLASSES)


@_builder
def mlp() -> nn.Module:
    """One hidden layer of 64 units."""
    from raysim.workloads.models.mlp_cnn import multilayer_perceptron

    return multilayer_perceptron(IMAGE, (64,), CLASSES)


@_builder
def mobilenet() -> nn.Module:
    """torchvision's MobileNetV2, unchanged also at 32x32."""
    from raysim.workloads.models.torchvision_models import mobilenet_v2

    return mobilenet_v2(IMAGE[0], CLASSES, small=False, width=1.0, dropout=0.2)


@_builder
def simple_cnn() -> nn.Module:
    """The network of pfl-research's benchmark of CIFAR-10: 1.63 million parameters."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(64 * 14 * 14, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, CLASSES),
    )


@_builder
def blazefl_cnn() -> nn.Module:
    """The network of BlazeFL's benchmark of CIFAR-10: 5x5 convolutions of 6 and 16, then 120 and 84 units."""
    from torch import nn

    layers = [nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES)]
    return nn.Sequential(*layers)


@_builder
def lstm() -> nn.Module:
    """LEAF's network for the next character (Caldas et al. 2018)."""
    from benchmarks.rounds.networks import CharacterLstm

    return CharacterLstm(CHARACTERS)


@_builder
def gin() -> nn.Module:
    """GIN (Xu et al. 2019) without BatchNorm: three convolutions, sum over the nodes, a linear layer, the head."""
    from benchmarks.rounds.networks import Gin

    return Gin(NODE_LABELS, GRAPH_CLASSES)
