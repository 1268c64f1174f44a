"""Elementwise functions that MKL computes for torch, by numpy: the same bits on every processor.

torch hands √x, eˣ, ln x and others of a float tensor to MKL's vector mathematics, whose kernels are chosen by the
processor whatever ``MKL_CBWR`` says, and are not rounded correctly: with the caps of :mod:`raysim.portable` a fifth of
all square roots missed the nearest float, on each processor others, and with them every step of Adam.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raysim import portable

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
}
"""torch's name of each function, and numpy's: square roots are the processor's own, the others numpy's code, capped."""
NARROW = (torch.bfloat16, torch.float16)
"""Types that numpy lacks, or computes no faster: their values go through float32, as in torch's own kernels."""


def take_over() -> None:
    """Have numpy compute these functions of tensors on the CPU from now on, in a process whose caps are set.

    In any other process nothing happens, so that a run's bits do not depend on the runs before it.
    """
    if not portable.missing():
        _registered()


@functools.cache
def _registered() -> torch.library.Library:
    library = torch.library.Library("aten", "IMPL")
    for name, function in FUNCTIONS.items():
        library.impl(name, functools.partial(_of, function), "CPU", allow_override=True)
        library.impl(f"{name}_", functools.partial(_in_place, function), "CPU", allow_override=True)
        library.impl(f"{name}.out", functools.partial(_out, function), "CPU", allow_override=True)
    return library


def _of(function: Callable[..., Any], values: Tensor) -> Tensor:
    """The function of each value, in the memory layout of ``values``; integers give torch's default float type."""
    kind = values.dtype
    if not (kind.is_floating_point or kind.is_complex):
        kind = torch.get_default_dtype()
    wide = values.detach().to(torch.float32 if kind in NARROW else kind)
    with np.errstate(all="ignore"):
        found = torch.from_numpy(np.asarray(function(wide.numpy())))
    return found.to(kind)


def _in_place(function: Callable[..., Any], values: Tensor) -> Tensor:
    return values.copy_(_of(function, values))


def _out(function: Callable[..., Any], values: Tensor, *, out: Tensor) -> Tensor:
    return out.resize_(values.shape).copy_(_of(function, values))
