"""The one shape that every model has, a body that makes features and a linear head, and which parts fit one task."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class Classifier(nn.Module):
    """logits = head(body(x)): body maps [B, C, H, W] to features [B, h], head is a plain linear layer [h -> classes].

    There are no other children, so that every parameter is named ``body.*`` or ``head.*``, and a method that treats the
    two apart needs no knowledge of the network. The body's input layer, or what it declares instead, and the head fit
    one task (``task_specific``).
    """

    def __init__(self, body: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.body = body
        self.head = head
        declared = getattr(body, "task_specific", None)
        own = layers(body)[0] if declared is None and layers(body) else declared or ()
        self.task_specific = (*(f"body.{part}" for part in own), "head")

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(inputs))
        return logits.float()  # under autocast they are bfloat16, too coarse for a loss


class WithPreference(nn.Module):
    """logits = head(body(x) + preference), the preference one vector [h] for all inputs, zero at first.

    Source: Tan et al. 2024, FedSSP, section 4.2. ``body`` and ``head`` are those of the classifier.
    """

    def __init__(self, classifier: Any) -> None:
        super().__init__()
        self.body = classifier.body
        self.head = classifier.head
        self.preference = nn.Parameter(torch.zeros(classifier.head.in_features))
        self.task_specific = (*task_specific(classifier), "preference")

    def forward(self, inputs: Any) -> Tensor:
        logits: Tensor = self.head(self.body(inputs) + self.preference)
        return logits.float()


def has_batch_norm(module: nn.Module) -> bool:
    """Whether the module contains BatchNorm of any kind, which cannot train on a batch of one sample."""
    return any(isinstance(part, _BatchNorm) for part in module.modules())


def task_specific(module: nn.Module) -> tuple[str, ...]:
    """Dotted names of the parts of a model that fit one task and are of no use to another: input layer and head.

    A module that knows them says so by an attribute ``task_specific``, names of modules, parameters or buffers in it.
    Of any other they are taken to be its first and its last layer with parameters, in the order in which they were
    made.
    """
    declared: tuple[str, ...] | None = getattr(module, "task_specific", None)
    if declared is not None:
        return declared
    found = layers(module)
    return tuple(dict.fromkeys(name for layer in (*found[:1], *found[-1:]) for name in layer))


def layers(module: nn.Module) -> list[list[str]]:
    """Dotted names of the parameters and buffers of every innermost module that has any, in the order of creation."""
    innermost = {prefix for prefix, part in module.named_modules() if not any(True for _ in part.children())}
    found: dict[str, list[str]] = {}
    for name in [*dict(module.named_parameters()), *dict(module.named_buffers())]:
        prefix = name.rpartition(".")[0]
        if prefix in innermost:
            found.setdefault(prefix, []).append(name)
    return list(found.values())
