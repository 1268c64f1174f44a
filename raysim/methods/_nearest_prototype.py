"""The module that FedProto makes of a classifier: it predicts the class whose prototype is nearest to the features."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from raysim.errors import ConfigError
from raysim.workloads.models.classifier import task_specific


class NearestPrototype(nn.Module):
    """Logit of class k = −‖body(x) − prototypes[k]‖₂² in evaluation mode, so that the nearest prototype is predicted.

    A class without a prototype has logit −∞: it is never predicted, and the loss of a sample of it is infinite. In
    training mode, and as long as no class has a prototype, the logits are the head's.

    Args:
        module: a ``raysim.workloads.models.classifier.Classifier``, whose parts are taken over.

    Raises:
        ConfigError: the module is no body with a linear head, which says how wide features are.
    """

    prototypes: Tensor
    """C̄ [classes, h]."""
    known: Tensor
    """1 for each class that has a prototype, 0 for all others [classes]."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        body, head = getattr(module, "body", None), getattr(module, "head", None)
        if not isinstance(body, nn.Module) or not isinstance(head, nn.Linear):
            raise ConfigError(
                "fedproto with method.predict prototypes needs a model of a body and a linear head "
                f"(raysim.workloads.models.classifier.Classifier), not {type(module).__name__}. Set method.predict to "
                "head, or take a model that comes with raysim."
            )
        self.body, self.head = body, head
        self.task_specific = (*task_specific(module), "prototypes", "known")
        self.register_buffer("prototypes", torch.zeros(head.out_features, head.in_features))
        self.register_buffer("known", torch.zeros(head.out_features))

    def forward(self, inputs: Any) -> Tensor:
        features = self.body(inputs)
        if self.training or not self.known.any():
            return cast(Tensor, self.head(features).float())
        # Differences, not ‖h‖² − 2⟨h, c⟩ + ‖c‖², which loses the digits that tell near prototypes apart.
        distances = [(features.float() - prototype).square().sum(dim=1) for prototype in self.prototypes]
        return -torch.stack(distances, dim=1).masked_fill(self.known == 0, torch.inf)
