"""The number format of local training: float32, or bfloat16 under autocast.

Under autocast the parameters, their gradients and the optimizer stay float32; matrix products and convolutions are
computed in bfloat16 (8 bits of mantissa), what is sensitive in float32, as torch chooses. What is judged is judged in
float32.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


def autocast(precision: str, device: str) -> AbstractContextManager[Any]:
    """The context in which forward passes of local training run."""
    return torch.autocast(torch.device(device).type, torch.bfloat16) if precision == "bf16" else nullcontext()
