"""The optimizers of local training, on the few flat tensors of a FlatModel.

The arithmetic is torch's own, by its functional forms, and so are the bits. Its classes are not used: the first that is
made imports torch's compiler, seconds in every process, and where models are small they cost more than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from raysim.config.sections import Training
from raysim.flat_model import Vector, as_tensor, to_numpy


class Optimizer:
    """Steps of an optimizer on given parameters, with a state that can be saved and loaded."""

    def __init__(self, parameters: Iterable[torch.nn.Parameter], learning_rate: float) -> None:
        self._parameters, self._rate = list(parameters), learning_rate

    def clear(self) -> None:
        """Forget the gradients, before a backward pass adds new ones."""
        for parameter in self._parameters:
            gradient_of(parameter).zero_()

    def step(self) -> None:
        """One step along the gradients that the parameters hold now."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """The moments that it has gathered: flat float32 vectors over its parameters, and numbers."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` gave; the arrays are copied."""


class Sgd(Optimizer):
    """torch.optim.SGD: v ← m v + (g + w θ), θ ← θ − r v, with v = g + w θ in the first step."""

    def __init__(
        self, parameters: Iterable[torch.nn.Parameter], learning_rate: float, momentum: float, weight_decay: float
    ) -> None:
        super().__init__(parameters, learning_rate)
        self._momentum, self._decay = momentum, weight_decay
        self._velocities: list[torch.Tensor | None] = [None] * len(self._parameters)

    @torch.no_grad()
    def step(self) -> None:
        sgd(
            list(self._parameters),
            [gradient_of(parameter) for parameter in self._parameters],
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

    def state(self) -> dict[str, Any]:
        velocities = [velocity for velocity in self._velocities if velocity is not None]
        return {"velocity": _joined(velocities)} if velocities else {}

    def load(self, state: Mapping[str, Any]) -> None:
        if state:
            self._velocities = [*_pieces(state["velocity"], self._parameters)]


class Descent(Optimizer):
    """θ ← θ − r g, with gradients that each backward pass makes anew (:meth:`FlatModel.loose_gradients`).

    It has the bits of :class:`Sgd` without momentum and weight decay.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], learning_rate: float) -> None:
        super().__init__(parameters, learning_rate)
        self._values = [(parameter, parameter.detach()) for parameter in self._parameters]
        """Each beside its values, whose steps are no part of a graph: a third of what no_grad costs a small model."""

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def step(self) -> None:
        for parameter, values in self._values:
            if parameter.grad is not None:
                values.add_(parameter.grad, alpha=-self._rate)


class Adam(Optimizer):
    """torch.optim.Adam or torch.optim.AdamW with their defaults β = (0.9, 0.999), ε = 1e-8.

    Args:
        decoupled: weight decay w shrinks θ by r w in each step (AdamW, Loshchilov and Hutter 2019); otherwise w θ is
            added to the gradient (Adam, Kingma and Ba 2015, with an L2 penalty).
    """

    def __init__(
        self, parameters: Iterable[torch.nn.Parameter], learning_rate: float, weight_decay: float, decoupled: bool
    ) -> None:
        super().__init__(parameters, learning_rate)
        self._decay, self._decoupled = weight_decay, decoupled
        self._means = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._steps = [torch.tensor(0.0) for _ in self._parameters]

    @torch.no_grad()
    def step(self) -> None:
        adam(
            list(self._parameters),
            [gradient_of(parameter) for parameter in self._parameters],
            self._means,
            self._squares,
            [],
            self._steps,
            foreach=False,
            fused=False,
            decoupled_weight_decay=self._decoupled,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self._rate,
            weight_decay=self._decay,
            eps=1e-8,
            maximize=False,
        )

    def state(self) -> dict[str, Any]:
        steps = int(self._steps[0]) if self._steps else 0
        return {"mean": _joined(self._means), "square": _joined(self._squares), "steps": steps}

    def load(self, state: Mapping[str, Any]) -> None:
        if state:
            self._means = _pieces(state["mean"], self._parameters)
            self._squares = _pieces(state["square"], self._parameters)
            self._steps = [torch.tensor(float(state["steps"])) for _ in self._parameters]


def make(parameters: Iterable[torch.nn.Parameter], training: Training, learning_rate: float) -> Optimizer:
    """The configured optimizer, before its first step."""
    if training.optimizer == "sgd":
        return Sgd(parameters, learning_rate, training.momentum, training.weight_decay)
    return Adam(parameters, learning_rate, training.weight_decay, decoupled=training.optimizer == "adamw")


def kept_bytes(training: Training, parameters: int) -> int:
    """Bytes that ``training.optimizer_state kept`` adds to the state of a client."""
    if training.optimizer_state != "kept":
        return 0
    return 4 * parameters * (1 if training.optimizer == "sgd" else 2)


def is_descent(training: Training) -> bool:
    """Whether the configured optimizer is plain gradient descent."""
    return training.optimizer == "sgd" and training.momentum == 0 and training.weight_decay == 0


def gradient_of(parameter: torch.nn.Parameter) -> torch.Tensor:
    """The gradient of a parameter of a FlatModel."""
    assert parameter.grad is not None, "FlatModel gives every parameter its gradient"
    return parameter.grad


def _joined(tensors: Sequence[torch.Tensor]) -> Vector:
    return to_numpy(torch.cat(list(tensors))) if tensors else to_numpy(torch.zeros(0))


def _pieces(values: Vector, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    pieces = as_tensor(values).split([tensor.numel() for tensor in like])
    return [piece.to(tensor.device, copy=True) for piece, tensor in zip(pieces, like, strict=True)]
