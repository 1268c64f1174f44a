"""Max-pooling in fewer passes over a training step's values than torch makes, with the same numbers."""

from __future__ import annotations

from typing import Any

import torch


def spare_passes(module: torch.nn.Module) -> None:
    """Have the module's ``MaxPool2d`` layers take channels_last gradients, and come before a ReLU in front of them.

    Behind the last of them images are flattened as a rule, so that its gradient comes back channels first. torch then
    computes channels first: it copies the indices and the whole gradient of the input, and that once more to be
    channels_last. The gradient of the output is smaller than the input's, and copied once instead.

    The largest of a window is the same before and after ReLU, and where it is not positive no gradient goes back. In a
    ``Sequential`` a ReLU in front of pooling is therefore computed behind it, on fewer values. A zero may have the
    other sign if one of its window is −0.0.
    """
    for part in module.modules():
        if isinstance(part, torch.nn.MaxPool2d):
            part.register_forward_hook(_follow_layout)
        if type(part) is torch.nn.Sequential:
            part.__class__ = PoolingFirst


class PoolingFirst(torch.nn.Sequential):
    """A ``Sequential`` that computes ReLU behind max-pooling where it has it in front."""

    def forward(self, values: Any) -> Any:
        """Apply the parts in their order, with the numbers of ``torch.nn.Sequential``."""
        parts = list(self)
        place = 0
        while place < len(parts):
            if place + 1 < len(parts) and _commute(parts[place], parts[place + 1]):
                values = parts[place](parts[place + 1](values))
                _follow_layout(parts[place], (), values)
                place += 2
            else:
                values = parts[place](values)
                place += 1
        return values


def _commute(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    """Whether they are ReLU and max-pooling, and nothing of a user's can look at what is between them."""
    if type(first) is not torch.nn.ReLU or type(second) is not torch.nn.MaxPool2d:
        return False
    if first.inplace or second.return_indices:
        return False
    hooks = [hook for part in (first, second) for kind in HOOKS for hook in getattr(part, kind).values()]
    return all(hook is _follow_layout for hook in hooks)


HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""Where torch's modules hold what is called with their inputs, outputs or gradients."""


def _follow_layout(module: torch.nn.Module, inputs: Any, output: Any) -> None:
    if not isinstance(output, torch.Tensor) or not output.requires_grad:  # with its indices, or in evaluation
        return
    if output.is_contiguous(memory_format=torch.channels_last) and not output.is_contiguous():
        output.register_hook(_to_channels_last)


def _to_channels_last(gradient: torch.Tensor) -> torch.Tensor:
    # As contiguous(memory_format=torch.channels_last), which vmap does not know.
    return gradient.movedim(1, -1).contiguous().movedim(-1, 1)
