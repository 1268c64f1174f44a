"""The optimisers of local training, on the few flat tensors of a FlatModel.

The arithmetic is torch's own, by its functional forms, and so are the bits. Its classes are not used: the first that is
made imports torch's compiler, seconds in every process, and where models are small they cost more than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import torch
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

if TYPE_CHECKING:
    from raysim.config import Training


class Optimizer(Protocol):
    def clear(self) -> None:
        """Forget the gradients, before a backward pass adds new ones."""
        ...

    def step(self) -> None:
        """One step along the gradients that the parameters hold now."""
        ...


class Sgd:
    """torch.optim.SGD: v ← m v + (g + w θ), θ ← θ − r v, with v = g + w θ in the first step."""

    def __init__(
        self, parameters: Iterable[torch.nn.Parameter], learning_rate: float, momentum: float, weight_decay: float
    ) -> None:
        self._parameters = list(parameters)
        self._rate, self._momentum, self._decay = learning_rate, momentum, weight_decay
        self._velocities: list[torch.Tensor | None] = [None] * len(self._parameters)

    def clear(self) -> None:
        _zero(self._parameters)

    @torch.no_grad()
    def step(self) -> None:
        sgd(
            list(self._parameters),
            [_gradient(parameter) for parameter in self._parameters],
            self._velocities,
            has_sparse_grad=False,
            foreach=False,
            weight_decay=self._decay,
            momentum=self._momentum,
            lr=self._rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )


class Descent:
    """θ ← θ − r g, with gradients that each backward pass makes anew (:meth:`FlatModel.loose_gradients`).

    It has the bits of :class:`Sgd` without momentum and weight decay.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], learning_rate: float) -> None:
        self._parameters = [(parameter, parameter.detach()) for parameter in parameters]
        """Each beside its values, whose steps are no part of a graph: a third of what no_grad costs a small model."""
        self._rate = learning_rate

    def clear(self) -> None:
        for parameter, _ in self._parameters:
            parameter.grad = None

    def step(self) -> None:
        for parameter, values in self._parameters:
            if parameter.grad is not None:
                values.add_(parameter.grad, alpha=-self._rate)


class AdamW:
    """torch.optim.AdamW with its defaults β = (0.9, 0.999), ε = 1e-8 (Loshchilov and Hutter 2019)."""

    def __init__(self, parameters: Iterable[torch.nn.Parameter], learning_rate: float, weight_decay: float) -> None:
        self._parameters = list(parameters)
        self._rate, self._decay = learning_rate, weight_decay
        self._means = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._steps = [torch.tensor(0.0) for _ in self._parameters]

    def clear(self) -> None:
        _zero(self._parameters)

    @torch.no_grad()
    def step(self) -> None:
        adamw(
            list(self._parameters),
            [_gradient(parameter) for parameter in self._parameters],
            self._means,
            self._squares,
            [],
            self._steps,
            foreach=False,
            fused=False,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self._rate,
            weight_decay=self._decay,
            eps=1e-8,
            maximize=False,
        )


def make(parameters: Iterable[torch.nn.Parameter], training: Training, learning_rate: float) -> Optimizer:
    """The configured optimiser, fresh: its state does not survive a visit."""
    if training.optimizer == "adamw":
        return AdamW(parameters, learning_rate, training.weight_decay)
    return Sgd(parameters, learning_rate, training.momentum, training.weight_decay)


def is_descent(training: Training) -> bool:
    """Whether the configured optimiser is plain gradient descent."""
    return training.optimizer == "sgd" and training.momentum == 0 and training.weight_decay == 0


def _zero(parameters: Iterable[torch.nn.Parameter]) -> None:
    for parameter in parameters:
        _gradient(parameter).zero_()


def _gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    assert parameter.grad is not None, "FlatModel gives every parameter its gradient"
    return parameter.grad
