"""A model whose parameters and buffers are views of one flat float32 vector.

One buffer makes the exchange of parameters one copy, the optimizer one step and the zeroing of gradients one fill. Its
order is

    [ parameters that stay | parameters that are shared | shared buffers | buffers that stay ]

so that all parameters (what is optimized) and all shared entries (what travels) are each one contiguous slice.

The rule for BatchNorm: running means and variances are floating-point buffers. Where their layer is shared they travel
behind the parameters and are averaged by samples; a method that does more to updates than average them (projections,
say), or weighs them otherwise, does that to the parameters only. Integer buffers (``num_batches_tracked``) never travel
and are set back to their initial values before every client task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from raysim.errors import ConfigError
from raysim.traits import SharedTensor

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Entry:
    """Where one tensor lies in the flat buffer."""

    name: str
    shape: tuple[int, ...]
    start: int
    stop: int
    parameter: bool
    shared: bool
    trained: bool
    """A parameter that is not frozen (``requires_grad_(False)``): no optimizer moves any other, nor does its decay."""


class FlatModel:
    """A module with its tensors laid out in one buffer.

    Args:
        module: the model; its parameters and float buffers are moved into the buffer, values kept.
        shared: names (of ``named_parameters`` and ``named_buffers``) that the server and the clients exchange.
    """

    def __init__(self, module: torch.nn.Module, shared: Collection[str], device: str = "cpu") -> None:
        self.module = module.to(device)
        self.device = device
        parameters = list(module.named_parameters())
        buffers = [(name, tensor) for name, tensor in module.named_buffers() if tensor.is_floating_point()]
        integers = [tensor for _, tensor in module.named_buffers() if not tensor.is_floating_point()]
        self._integer_buffers = [(tensor, tensor.clone()) for tensor in integers]
        unknown = set(shared) - {name for name, _ in parameters + buffers} - {n for n, _ in module.named_buffers()}
        if unknown:
            raise ConfigError(f"shared names that the model does not have: {', '.join(sorted(unknown))}")
        parts: list[tuple[list[tuple[str, torch.Tensor]], bool, bool]] = [
            ([(n, t) for n, t in parameters if n not in shared], True, False),
            ([(n, t) for n, t in parameters if n in shared], True, True),
            ([(n, t) for n, t in buffers if n in shared], False, True),
            ([(n, t) for n, t in buffers if n not in shared], False, False),
        ]
        sizes = [sum(tensor.numel() for _, tensor in part) for part, _, _ in parts]
        self._parameter_stop = sizes[0] + sizes[1]
        self._shared = slice(sizes[0], sizes[0] + sizes[1] + sizes[2])
        self.shared_parameter_count = sizes[1]
        self.buffer = torch.empty(sum(sizes), dtype=torch.float32, device=device)
        self._gradient: torch.Tensor | None = None
        self.optimizer_states: dict[str, Mapping[str, Any]] = {}
        """With ``training.optimizer_state kept``: what the optimizers of this client's trainings ended with."""
        self.entries: list[Entry] = []
        self._parameters: list[tuple[Entry, torch.nn.Parameter]] = []
        start = 0
        for part, is_parameter, is_shared in parts:
            for name, tensor in part:
                stop = start + tensor.numel()
                view = laid_out(self.buffer[start:stop], tensor.shape)
                with torch.no_grad():
                    view.copy_(tensor)
                    tensor.data = view
                trained = is_parameter and tensor.requires_grad
                entry = Entry(name, tuple(tensor.shape), start, stop, is_parameter, is_shared, trained)
                self.entries.append(entry)
                if is_parameter:
                    assert isinstance(tensor, torch.nn.Parameter)
                    tensor.grad = None
                    self._parameters.append((entry, tensor))
                start = stop
        self._initial = self.buffer.clone()
        self.channels_last = any(len(entry.shape) == 4 for entry in self.entries)
        """The layout of the kernels of its convolutions, and what its inputs should have; False if it has none."""

    @property
    def parameters(self) -> torch.Tensor:
        """All parameters, shared or not: a view [P]."""
        return self.buffer[: self._parameter_stop]

    @property
    def shared(self) -> torch.Tensor:
        """The vector that travels, shared parameters and then shared float buffers: a view [d]."""
        return self.buffer[self._shared]

    @property
    def shared_parameters(self) -> torch.Tensor:
        """The shared entries that are parameters (no buffers): a view [shared_parameter_count]."""
        return self.shared[: self.shared_parameter_count]

    @property
    def gradient(self) -> torch.Tensor:
        """The gradient of :attr:`parameters` [P], to which every backward pass adds.

        It is made when it is first asked for: plain gradient descent does without (:meth:`loose_gradients`).
        """
        if self._gradient is None:
            self._gradient = torch.zeros(self._parameter_stop, dtype=torch.float32, device=self.device)
            self._bind_gradients(self._gradient)
        return self._gradient

    def _bind_gradients(self, gradient: torch.Tensor) -> None:
        """Make every parameter's own gradient a view; what a backward pass has left there is kept."""
        for entry, parameter in self._parameters:
            view, found = laid_out(gradient[entry.start : entry.stop], entry.shape), parameter.grad
            if found is not None:
                view.copy_(found)
            parameter.grad = view

    @property
    def shared_gradient(self) -> torch.Tensor:
        """The gradient of :attr:`shared_parameters`: a view."""
        return self.gradient[self._shared.start : self._shared.start + self.shared_parameter_count]

    def reset(self) -> None:
        """Back to the initial values, so that nothing of one client task can reach the next."""
        self.buffer.copy_(self._initial)
        self.optimizer_states = {}
        self._drop_gradients()
        if self._gradient is not None:
            self._gradient.zero_()
            self._bind_gradients(self._gradient)
        for tensor, initial in self._integer_buffers:
            tensor.copy_(initial)

    @contextmanager
    def loose_gradients(self, belongs: Callable[[str], bool]) -> Iterator[list[torch.nn.Parameter]]:
        """The module's own parameters of the chosen names, with gradients of None that a backward pass replaces.

        It then neither zeroes nor adds to :attr:`gradient`: two passes over memory that plain gradient descent can do
        without (a step of the CNN 0.98 of the time, in bfloat16 0.96). Afterwards there are none, or views as before.
        """
        self._drop_gradients()
        try:
            yield [parameter for entry, parameter in self._parameters if entry.trained and belongs(entry.name)]
        finally:
            self._drop_gradients()
            if self._gradient is not None:
                self._bind_gradients(self._gradient)

    def scaled_loose_gradient(self, factor: float) -> torch.Tensor:
        """A new vector [d], ``factor`` times the gradient by the shared entries, within :meth:`loose_gradients`.

        It is 0 where there is no gradient, as for buffers.
        """
        scaled = torch.empty_like(self.shared)
        scaled[self.shared_parameter_count :] = 0
        for entry, parameter in self._parameters:
            if entry.shared:
                view = laid_out(scaled[entry.start - self._shared.start : entry.stop - self._shared.start], entry.shape)
                if parameter.grad is None:
                    view.zero_()
                else:
                    torch.mul(parameter.grad, factor, out=view)
        return scaled

    def _drop_gradients(self) -> None:
        for _, parameter in self._parameters:
            parameter.grad = None

    @property
    def shared_tensors(self) -> tuple[SharedTensor, ...]:
        """The shared tensors, in the order of :attr:`shared`."""
        return tuple(SharedTensor(each.shape, each.trained, each.parameter) for each in self.entries if each.shared)

    def last_layers(self, count: int) -> NDArray[np.bool_]:
        """Which shared entries [d] are parameters of the last ``count`` modules that have any of their own."""
        entries = [entry for entry in self.entries if entry.shared]
        owners = list(dict.fromkeys(entry.name.rpartition(".")[0] for entry in entries if entry.parameter))[-count:]
        chosen = [entry.parameter and entry.name.rpartition(".")[0] in owners for entry in entries]
        return np.repeat(chosen, [entry.stop - entry.start for entry in entries]).astype(np.bool_)

    def load_shared(self, values: Vector) -> None:
        """Copy a vector [d] into the shared entries."""
        self.shared.copy_(as_tensor(values))

    def take_shared(self) -> Vector:
        """A copy of the shared entries [d]."""
        return to_numpy(self.shared)

    def change_from(self, start: Vector) -> Vector:
        """Δ = θ − start over the shared entries [d], a new vector: what a client's training has changed."""
        if self.device == "cpu":
            change: Vector = np.subtract(self.shared.numpy(), start)
            return change
        return self.take_shared() - start

    def load_private(self, values: Vector) -> None:
        """Copy a vector as :meth:`take_private` gives it into the entries that stay."""
        tensor = as_tensor(values)
        start, stop = self._shared.start, self._shared.stop
        self.buffer[:start].copy_(tensor[:start])
        self.buffer[stop:].copy_(tensor[start:])

    def take_private(self) -> Vector:
        """A copy of the entries that stay with the client: parameters, then float buffers."""
        return to_numpy(torch.cat([self.buffer[: self._shared.start], self.buffer[self._shared.stop :]]))

    def select(self, belongs: Callable[[str], bool]) -> list[torch.nn.Parameter]:
        """Flat parameters (views, gradients included) of the chosen names, neighbors merged, for an optimizer.

        Frozen ones are left out.
        """
        runs: list[tuple[int, int]] = []
        for entry in self.entries:
            if entry.trained and belongs(entry.name):
                if runs and runs[-1][1] == entry.start:
                    runs[-1] = (runs[-1][0], entry.stop)
                else:
                    runs.append((entry.start, entry.stop))
        chosen = []
        for start, stop in runs:
            parameter = torch.nn.Parameter(self.buffer[start:stop])
            parameter.grad = self.gradient[start:stop]
            chosen.append(parameter)
        return chosen


def as_tensor(values: Vector) -> torch.Tensor:
    """A tensor over the same memory, for reading only.

    Arrays from the object store are read-only, which torch warns about; every use here only copies out of them.
    """
    if values.flags.writeable:
        return torch.from_numpy(values)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(values)


def laid_out(flat: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """A view of a piece [k] of the buffer, or of rows of such pieces [..., k], in a tensor's shape [..., *shape].

    Kernels of convolutions are laid out in channels_last, as their inputs are.

    Measured on one core, a step of SGD with batches of 50 images of 3x32x32, against kernels in rows: 0.80 of the time
    for the CNN, 0.81 for MobileNetV2.
    """
    leading = flat.shape[:-1]
    if len(shape) != 4:
        return flat.view((*leading, *shape))
    outputs, inputs, height, width = shape
    return flat.view(*leading, outputs, height, width, inputs).movedim(-1, -3)


def finite(values: torch.Tensor) -> bool:
    """Whether there is no NaN and no infinity among them."""
    # One is in the sum too; a sum may also overflow by itself. ``isfinite`` alone takes 30 times as long on a CPU.
    return math.isfinite(float(values.sum())) or bool(torch.isfinite(values).all())


def to_numpy(tensor: torch.Tensor) -> Vector:
    """A NumPy copy that does not share memory with the model."""
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32, copy=True)


def all_names(module: torch.nn.Module) -> set[str]:
    """Everything is shared: every parameter and float buffer."""
    names = {name for name, _ in module.named_parameters()}
    return names | {name for name, tensor in module.named_buffers() if tensor.is_floating_point()}


def batch_norm_names(module: torch.nn.Module) -> set[str]:
    """Scale, shift, running mean and running variance of every BatchNorm layer."""
    names = set()
    for prefix, child in module.named_modules():
        if isinstance(child, torch.nn.modules.batchnorm._BatchNorm):
            own = [*child.named_parameters(recurse=False), *child.named_buffers(recurse=False)]
            names |= {f"{prefix}.{name}" if prefix else name for name, tensor in own if tensor.is_floating_point()}
    return names
