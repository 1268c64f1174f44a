"""The one shape that every image model has: a body that makes features and a linear head on them."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class Classifier(nn.Module):
    """logits = head(body(x)): body maps [B, C, H, W] to features [B, h], head is a plain linear layer [h -> classes].

    There are no other children, so that every parameter is named `body.*` or `head.*`, and a method that treats the
    two apart needs no knowledge of the network.
    """

    def __init__(self, body: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(inputs))
        return logits.float()  # under autocast they are bfloat16, too coarse for a loss


def has_batch_norm(module: nn.Module) -> bool:
    """Whether the module contains BatchNorm of any kind, which cannot train on a batch of one sample."""
    return any(isinstance(part, _BatchNorm) for part in module.modules())
