"""Federated averaging with local BatchNorm."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from raysim.method import FlatModel, Module, Traits, Vector
from raysim.methods._halves import AveragedPart


@dataclass(frozen=True)
class FedBN(AveragedPart):
    """FedBN: FedAvg in which every BatchNorm layer, parameters and statistics, stays with its client.

    Source: Li et al. 2021, FedBN: federated learning on non-IID features via local batch normalization (arXiv
    2102.07623), Algorithm 1. Every client is judged by the shared part with its own BatchNorm, on its own test set; a
    client before its first task has BatchNorm's initial values. On a model without BatchNorm this is FedAvg, judged
    on the clients' own test sets, and says so.
    """

    traits: ClassVar[Traits] = Traits(weighted_mean=True, personal=True, plain_training=True)

    def shared_names(self, module: Module) -> Collection[str]:
        from raysim.flat_model import all_names, batch_norm_names

        return all_names(module) - batch_norm_names(module)

    def init_server(self, model: FlatModel) -> Vector:
        if all(entry.shared for entry in model.entries):
            warnings.warn(
                "the model has no BatchNorm layer, so fedbn equals fedavg (judged on the clients' own test sets); "
                "take a model with BatchNorm, such as --model resnet18",
                stacklevel=2,
            )
        return super().init_server(model)


METHOD = FedBN
