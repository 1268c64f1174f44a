"""Features of a model as it was at one moment, for losses that compare the model in training with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def frozen_features(body: torch.nn.Module, evaluation: bool = True) -> Callable[[Any], torch.Tensor]:
    """Features that ``body`` computes with the values that it has now, without a gradient.

    Args:
        evaluation: in evaluation mode. Else in the mode of ``body``: in training BatchNorm then takes the statistics of
            the batch, and its running statistics move in a copy.
    """
    values = {name: value.detach().clone() for name, value in [*body.named_parameters(), *body.named_buffers()]}

    def features(x: Any) -> torch.Tensor:
        modes = [(part, part.training) for part in body.modules()]
        if evaluation:
            body.eval()
        with torch.no_grad():
            found: torch.Tensor = torch.func.functional_call(body, values, (x,))
        for part, mode in modes:
            part.training = mode
        return found

    return features
