"""Probes of a model with single samples: does it look at the others of a batch, and how much does it compute?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from raysim import seeds
from raysim.workloads.models.classifier import has_batch_norm

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel


def takes_samples_alone(model: FlatModel, input_shape: tuple[int, ...]) -> bool:
    """Whether a batch's outputs and gradients in training are those of its parts: no BatchNorm, no dropout, no memory.

    It is tried out, with other values in the model, as nobody can know a user's own module by its parts.
    """
    if has_batch_norm(model.module):
        return False
    generator = torch.Generator().manual_seed(0)
    for entry in model.entries:
        values = model.buffer[entry.start : entry.stop]
        values.add_(0.05 * torch.randn(values.shape, generator=generator).to(model.device))
    inputs = torch.randn(8, *input_shape, generator=generator).to(model.device)
    before = [tensor.clone() for tensor in model.module.buffers()]
    model.module.train()
    with seeds.kept_streams():
        stream = torch.get_rng_state()
        try:
            whole = _outputs_and_gradients(model, [inputs])
            # Of a loss that is much larger too, as the sum over a group's samples is: whoever clips gradients shows.
            others = [
                _outputs_and_gradients(model, [inputs[:3], inputs[3:]]),
                _outputs_and_gradients(model, [inputs], 4096),
            ]
        except Exception:  # of the user's module, which may want other inputs
            return False
        drew = not torch.equal(stream, torch.get_rng_state())
    if drew or not all(map(torch.equal, before, model.module.buffers())):
        return False
    return all(len(other) == len(whole) and all(map(_close, whole, other)) for other in others)


def _outputs_and_gradients(model: FlatModel, parts: Sequence[torch.Tensor], factor: int = 1) -> list[torch.Tensor]:
    """Outputs, and gradients of Σ |outputs|² over all parts (scaled by a power of two that is taken out again)."""
    with model.loose_gradients(lambda name: True) as parameters:
        outputs = []
        for part in parts:
            outputs.append(model.module(part))
            (factor * outputs[-1].square().sum()).backward()
        gradients = [parameter.grad / factor for parameter in parameters if parameter.grad is not None]
        return [torch.cat(outputs).detach(), *gradients]


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are equal relative to the largest value; NaN is close to nothing."""
    if one.shape != other.shape or one.numel() == 0:
        return one.shape == other.shape
    return float((one - other).abs().max()) <= 1e-4 * float(one.abs().max())


def operations(model: FlatModel, input_shape: tuple[int, ...]) -> float:
    """About how many additions and multiplications the forward pass of a sample takes.

    Of every tensor of weights [outputs, ...] two for each of its numbers at each place of the output.
    """
    counted = [0.0]

    def count(module: torch.nn.Module, inputs: object, output: object) -> None:
        if isinstance(output, torch.Tensor):
            for weights in module.parameters(recurse=False):
                outputs = weights.shape[0] if weights.dim() > 0 else 1
                counted[0] += 2 * weights.numel() * output.numel() / max(1, outputs)

    hooks = [module.register_forward_hook(count) for module in model.module.modules()]
    with seeds.kept_streams(), torch.no_grad():
        model.module(torch.zeros(2, *input_shape, device=model.device))
    for hook in hooks:
        hook.remove()
    return counted[0] / 2
