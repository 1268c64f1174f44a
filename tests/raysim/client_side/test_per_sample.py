"""Modules that look at more than a sample, each in its own way, are noticed; operations are those counted by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from raysim.client_side.per_sample import operations, takes_samples_alone
from raysim.flat_model import FlatModel
from raysim.workloads.models.mlp_cnn import mcmahan_cnn, multilayer_perceptron


class _Layer(nn.Module):
    """Does this to its inputs."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.function(inputs)


class _Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Buffer(torch.zeros(1))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.seen.add_(inputs.abs().mean())
        return inputs


def _with_gradients(function: Callable[[torch.Tensor], torch.Tensor]) -> nn.Module:
    """Outputs of each sample alone, but gradients that are changed."""
    layer = nn.Linear(5, 5)
    layer.weight.register_hook(function)
    return layer


PARTS: dict[str, Callable[[], nn.Module]] = {
    "mixes": lambda: _Layer(lambda inputs: inputs - inputs.mean(0)),
    "remembers": _Remembers,
    "draws": lambda: _Layer(lambda inputs: inputs + 0.1 * torch.randn_like(inputs)),
    "drops next to nothing, which outputs do not show": lambda: nn.Dropout(1e-9),
    "scales gradients by their own length": lambda: _with_gradients(lambda gradient: gradient / gradient.norm()),
    "clips gradients, as only a large loss shows": lambda: _with_gradients(lambda gradient: gradient.clamp(-20, 20)),
    "takes whole numbers only": lambda: _Layer(lambda inputs: nn.functional.one_hot(inputs)),
    "normalizes": lambda: nn.BatchNorm1d(5),
    "drops": nn.Dropout,
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("silent", [False, True])
def test_a_module_that_looks_at_more_than_a_sample_is_noticed(part: str, silent: bool) -> None:
    """Also behind a head of zeros, which hides it from the outputs of the initial model."""
    module = multilayer_perceptron((6,), (5,), 3)
    assert takes_samples_alone(FlatModel(module, set()), (6,))
    module = multilayer_perceptron((6,), (5,), 3)
    assert isinstance(module.body, nn.Sequential)
    module.body.append(PARTS[part]())
    if silent:
        nn.init.zeros_(module.head.weight)
    assert not takes_samples_alone(FlatModel(module, set()), (6,))


def test_operations_by_hand() -> None:
    assert takes_samples_alone(FlatModel(mcmahan_cnn((3, 8, 8), 4), set()), (3, 8, 8))
    perceptron = FlatModel(multilayer_perceptron((6,), (5,), 3), set())
    assert operations(perceptron, (6,)) == 2 * (6 * 5 + 5 + 5 * 3 + 3)
    network = FlatModel(mcmahan_cnn((3, 8, 8), 4), set())
    weights = 3 * 25 * 32 * 64 + 32 * 25 * 64 * 16 + 64 * 4 * 512 + 512 * 4
    biases = 32 * 64 + 64 * 16 + 512 + 4
    assert operations(network, (3, 8, 8)) == 2 * (weights + biases)


class _Factor(nn.Module):
    """A parameter that is a single number, and one that is none."""

    def __init__(self) -> None:
        super().__init__()
        self.factor, self.none = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.zeros(0))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs * self.factor


def test_parameters_of_any_shape() -> None:
    module = multilayer_perceptron((6,), (5,), 3)
    assert isinstance(module.body, nn.Sequential)
    module.body.append(_Factor())
    model = FlatModel(module, set())
    assert takes_samples_alone(model, (6,))
    assert operations(model, (6,)) == 2 * (6 * 5 + 5 + 5 + 5 * 3 + 3)
