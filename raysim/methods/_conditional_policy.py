"""The module that FedCP makes of a classifier: a policy that splits each sample's features between two heads."""

from __future__ import annotations

import copy
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gumbel_softmax, normalize

from raysim.errors import ConfigError
from raysim.workloads.models.classifier import task_specific

BANDWIDTHS = (10.0, 15.0, 20.0, 50.0)
"""a of the kernels exp(−d² / 2a) that are added up, as in the authors' code."""


class Policy(nn.Module):
    """(r, s) = softmax over the pair of ReLU(LayerNorm(W c + b)), c [B, h] → r, s [B, h] with r + s = 1.

    Args:
        features: h.
        noise: add Gumbel noise to the logits in training mode, from torch's global stream.
    """

    def __init__(self, features: int, noise: bool) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 2 * features), nn.LayerNorm(2 * features), nn.ReLU())
        self.noise = noise

    def forward(self, condition: Tensor) -> tuple[Tensor, Tensor]:
        pairs = self.layers(condition).view(len(condition), 2, -1)
        shares = gumbel_softmax(pairs, dim=1) if self.noise and self.training else pairs.softmax(dim=1)
        return shares[:, 0], shares[:, 1]


class ConditionalClassifier(nn.Module):
    """logits = global_head(r ⊙ h) + head(s ⊙ h) with h = body(x) [B, h] and (r, s) = policy(h ⊙ context).

    ``global_head`` starts as a copy of ``head``; no optimizer moves it. ``context`` [h] is set by
    :meth:`set_context`, not trained.

    Args:
        module: a ``raysim.workloads.models.classifier.Classifier``, whose parts are taken over.
        noise: see :class:`Policy`.
    """

    context: Tensor

    def __init__(self, module: nn.Module, noise: bool) -> None:
        super().__init__()
        body, head = getattr(module, "body", None), getattr(module, "head", None)
        if not isinstance(body, nn.Module) or not isinstance(head, nn.Linear):
            raise ConfigError(
                "fedcp needs a model of a body and a linear head (raysim.workloads.models.classifier.Classifier), not "
                f"{type(module).__name__}; every model that comes with raysim is one"
            )
        self.body, self.head = body, head
        self.global_head = copy.deepcopy(head)
        self.policy = Policy(head.in_features, noise)
        self.task_specific = (*task_specific(module), "global_head", "context")
        self.register_buffer("context", torch.zeros(head.in_features))
        self.set_context()

    def set_context(self) -> None:
        """context = v / ‖v‖, v = Σ over classes of the personal head's weights: what the client is, for the policy."""
        with torch.no_grad():
            self.context.copy_(normalize(self.head.weight.sum(dim=0), dim=0))

    def predict(self, features: Tensor) -> Tensor:
        """Logits [B, classes] of features [B, h]."""
        to_global, to_personal = self.policy(features * self.context)
        return cast(Tensor, self.global_head(to_global * features) + self.head(to_personal * features))

    def forward(self, inputs: Any) -> Tensor:
        return self.predict(self.body(inputs))


def discrepancy(first: Tensor, second: Tensor) -> Tensor:
    """MMD² of two sets of features [B, h], the mean over all pairs (i, j) of k(x_i, x_j) + k(y_i, y_j) − 2 k(x_i, y_j).

    k(x, y) = Σ_a exp(−‖x − y‖² / 2a) over :data:`BANDWIDTHS`, in float32: in bfloat16 ‖x‖² + ‖y‖² − 2⟨x, y⟩ loses the
    digits of near pairs, comes out below 0, and its kernel without bounds.
    """

    def kernel(x: Tensor, y: Tensor) -> Tensor:
        squares = x.square().sum(dim=1)[:, None] + y.square().sum(dim=1) - 2.0 * x @ y.T
        return torch.stack([torch.exp(squares * (-0.5 / bandwidth)) for bandwidth in BANDWIDTHS]).sum(dim=0)

    with torch.autocast(first.device.type, enabled=False):
        first, second = first.float(), second.float()
        return (kernel(first, first) + kernel(second, second) - 2.0 * kernel(first, second)).mean()
