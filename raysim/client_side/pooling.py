"""Keeps the gradient of max-pooling in the layout of its input, where torch would copy it to another and back."""

from __future__ import annotations

from typing import Any

import torch


def keep_layout(module: torch.nn.Module) -> None:
    """Have the backward passes of the module's ``MaxPool2d`` layers take channels_last gradients.

    Behind the last of them images are flattened as a rule, so that its gradient comes back channels first. torch then
    computes channels first: it copies the indices and the whole gradient of the input, and that once more to be
    channels_last. The gradient of the output is smaller than the input's, and copied once instead. Values are the same,
    bit for bit.
    """
    for part in module.modules():
        if isinstance(part, torch.nn.MaxPool2d):
            part.register_forward_hook(_follow_layout)


def _follow_layout(module: torch.nn.Module, inputs: Any, output: Any) -> None:
    if not isinstance(output, torch.Tensor) or not output.requires_grad:  # with its indices, or in evaluation
        return
    if output.is_contiguous(memory_format=torch.channels_last) and not output.is_contiguous():
        output.register_hook(_to_channels_last)


def _to_channels_last(gradient: torch.Tensor) -> torch.Tensor:
    # As contiguous(memory_format=torch.channels_last), which vmap does not know.
    return gradient.movedim(1, -1).contiguous().movedim(-1, 1)
