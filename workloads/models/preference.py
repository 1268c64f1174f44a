"""A classifier with a vector that is added to its features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from workloads.models.classifier import task_specific


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
