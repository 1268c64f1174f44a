"""FedStar: clients share what they know of structure, and keep what they know of node features."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from raysim.method import Module, Traits
from raysim.methods._halves import AveragedPart

STRUCTURE = "body.structure."


@dataclass(frozen=True)
class FedStar(AveragedPart):
    """FedStar: FedAvg of the structural channel alone; the feature channel and the head never leave their client.

    Source: Tan et al. 2023, Federated learning on non-IID graphs via structural knowledge sharing (AAAI; arXiv
    2211.13009); network and encodings are the model ``gin-star``. The channel is averaged by samples, as in the
    authors' code. What a client keeps is its whole remaining model, from one task to the next.
    """

    traits: ClassVar[Traits] = Traits(weighted_mean=True, personal=True, model_parts=(STRUCTURE,))
    defaults: ClassVar[Mapping[str, object]] = {"workload.name": "toy-graphs", "model.name": "gin-star"}

    def shared_names(self, module: Module) -> Collection[str]:
        from raysim.flat_model import all_names

        return {name for name in all_names(module) if name.startswith(STRUCTURE)}


METHOD = FedStar
