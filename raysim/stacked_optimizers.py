"""The optimisers of raysim/optimizers.py on the rows of a matrix, one client a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import torch

if TYPE_CHECKING:
    from raysim.config import Training

Moments: TypeAlias = "dict[str, torch.Tensor]"
"""What an optimiser keeps between steps, each [n, P]."""


class StackedOptimizer(Protocol):
    def moments(self, parameters: torch.Tensor) -> Moments:
        """What it keeps for rows [n, P], before the first step."""
        ...

    def step(self, parameters: torch.Tensor, gradient: torch.Tensor, moments: Moments, counts: Sequence[int]) -> None:
        """Change parameters and moments in place.

        Args:
            gradient: [n, P]; may be overwritten.
            counts: which step this is for each row, from 1.
        """
        ...


class StackedSgd:
    """v ← m v + (g + w θ), θ ← θ − r v."""

    def __init__(self, learning_rate: float, momentum: float, weight_decay: float) -> None:
        self._rate, self._momentum, self._decay = learning_rate, momentum, weight_decay

    def moments(self, parameters: torch.Tensor) -> Moments:
        # From zero: the first step then has v = g + w θ, as torch's.
        return {"velocity": torch.zeros_like(parameters)} if self._momentum else {}

    def step(self, parameters: torch.Tensor, gradient: torch.Tensor, moments: Moments, counts: Sequence[int]) -> None:
        if self._decay:
            gradient.add_(parameters, alpha=self._decay)
        if self._momentum:
            gradient = moments["velocity"].mul_(self._momentum).add_(gradient)
        parameters.add_(gradient, alpha=-self._rate)


class StackedAdamW:
    """AdamW with β = (0.9, 0.999), ε = 1e-8; the bias corrections follow each row's own count of steps."""

    def __init__(self, learning_rate: float, weight_decay: float) -> None:
        self._rate, self._decay = learning_rate, weight_decay

    def moments(self, parameters: torch.Tensor) -> Moments:
        return {"mean": torch.zeros_like(parameters), "square": torch.zeros_like(parameters)}

    def step(self, parameters: torch.Tensor, gradient: torch.Tensor, moments: Moments, counts: Sequence[int]) -> None:
        mean, square = moments["mean"], moments["square"]
        parameters.mul_(1 - self._rate * self._decay)
        mean.lerp_(gradient, 1 - 0.9)
        square.mul_(0.999).addcmul_(gradient, gradient, value=1 - 0.999)
        sizes = [self._rate / (1 - 0.9**count) for count in counts]
        roots = [(1 - 0.999**count) ** 0.5 for count in counts]
        size, root = torch.tensor([sizes, roots], dtype=gradient.dtype, device=gradient.device)[:, :, None]
        parameters.sub_(size * mean / (square.sqrt() / root).add_(1e-8))


def make(training: Training, learning_rate: float) -> StackedOptimizer:
    """The configured optimiser."""
    if training.optimizer == "adamw":
        return StackedAdamW(learning_rate, training.weight_decay)
    return StackedSgd(learning_rate, training.momentum, training.weight_decay)
