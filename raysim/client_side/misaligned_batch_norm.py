"""Keeps BatchNorm away from cuDNN where its tensors lie at addresses that cuDNN cannot read.

The tensors of a :class:`~raysim.flat_model.FlatModel` lie behind one another, so that after a layer of ten biases the
running means begin at a multiple of 8 bytes. cuDNN's kernels for BatchNorm read four floats at a time and end with
"misaligned address" there (ResNet-18 and MobileNetV2 on an H200); torch's own read them one by one.
"""

from __future__ import annotations

from types import MethodType

import torch
from torch.nn.modules.batchnorm import _BatchNorm

ALIGNMENT = 16
"""Bytes: cuDNN takes addresses that are multiples of it."""


def spare_misaligned(module: torch.nn.Module) -> None:
    """Let torch's own kernels compute every BatchNorm of the module that has a misaligned tensor."""
    for child in module.modules():
        if isinstance(child, _BatchNorm) and _misaligned(child):
            child.forward = MethodType(_without_cudnn, child)  # type: ignore[method-assign]


def _misaligned(layer: _BatchNorm) -> bool:
    tensors = [layer.weight, layer.bias, layer.running_mean, layer.running_var]
    return any(tensor is not None and tensor.data_ptr() % ALIGNMENT for tensor in tensors)


def _without_cudnn(layer: _BatchNorm, inputs: torch.Tensor) -> torch.Tensor:
    enabled = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = False
    try:
        outputs: torch.Tensor = type(layer).forward(layer, inputs)
        return outputs
    finally:
        torch.backends.cudnn.enabled = enabled
