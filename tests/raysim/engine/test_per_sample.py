"""Modules that look at more than a sample, each in its own way, are noticed; operations are those counted by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from raysim.engine.per_sample import operations, takes_samples_alone
from raysim.flat_model import FlatModel
from workloads.models.mlp_cnn import mcmahan_cnn, multilayer_perceptron


class _Mixes(nn.Module):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs - inputs.mean(0)


class _Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Buffer(torch.zeros(1))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.seen.add_(inputs.abs().mean())
        return inputs


class _Draws(nn.Module):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs + 0.1 * torch.randn_like(inputs)


class _Rarely(nn.Dropout):
    """Drops next to nothing, so that the outputs do not show it."""

    def __init__(self) -> None:
        super().__init__(1e-9)


class _Scales(nn.Linear):
    """Outputs of each sample alone, but gradients that are scaled by their own length."""

    def __init__(self) -> None:
        super().__init__(5, 5)
        self.weight.register_hook(lambda gradient: gradient / gradient.norm())


class _Clips(nn.Linear):
    """Gradients that only a large loss shows to be clipped."""

    def __init__(self) -> None:
        super().__init__(5, 5)
        self.weight.register_hook(lambda gradient: gradient.clamp(-20, 20))


class _Tokens(nn.Module):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        raise TypeError("whole numbers only")


@pytest.mark.parametrize(
    "part", [_Mixes, _Remembers, _Draws, _Rarely, _Scales, _Clips, _Tokens, nn.BatchNorm1d, nn.Dropout]
)
@pytest.mark.parametrize("silent", [False, True])
def test_a_module_that_looks_at_more_than_a_sample_is_noticed(part: type[nn.Module], silent: bool) -> None:
    """Also behind a head of zeros, which hides it from the outputs of the initial model."""
    module = multilayer_perceptron((6,), (5,), 3)
    assert takes_samples_alone(FlatModel(module, set()), (6,))
    module = multilayer_perceptron((6,), (5,), 3)
    assert isinstance(module.body, nn.Sequential)
    module.body.append(part(5) if part is nn.BatchNorm1d else part())
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
