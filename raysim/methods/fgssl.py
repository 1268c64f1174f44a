"""FGSSL at graph level: features held together by class and in shape by the frozen global model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, cast

from raysim.method import ClientTask, FlatModel, Loss, Message, Module, Tensor, Traits, Update
from raysim.methods.fedavg import FedAvg
from raysim.workloads.federated_data import Batch, ClientData
from raysim.workloads.objective import CLASSIFICATION, Objective
from raysim.workloads.option_types import Help, NonNegative, Positive


@dataclass(frozen=True)
class FGSSL(FedAvg):
    """FGSSL: FedAvg with local loss CE + w₁ · contrast(h, ĥ, y) + w₂ · structure(h, ĥ).

    Source: Huang et al. 2023, Federated graph semantic and structural learning (IJCAI; arXiv 2406.18937), its federated
    node semantic contrast and graph structure distillation, read for graphs in place of nodes: h are the features
    [B, h] of a batch's graphs in the model that trains, ĥ those of the model as it was received, frozen and in
    evaluation mode. Departures: a graph is compared with all others of its batch (a node with its neighbors), and no
    edges or features are dropped at random to make two views. One temperature serves both terms.
    """

    contrast: Annotated[
        NonNegative, Help("weight w1 of the supervised contrast with the global model's features", "Huang et al. 2023")
    ] = 1.0
    structure: Annotated[
        NonNegative,
        Help("weight w2 of the distillation of the global model's similarities within a batch", "Huang et al. 2023"),
    ] = 1.0
    temperature: Annotated[Positive, Help("what cosines are divided by before a softmax", "Huang et al. 2023")] = 0.5

    traits: ClassVar[Traits] = Traits(
        weighted_mean=True, classification=True, model_parts=("head.",), head_of_body=True
    )
    defaults: ClassVar[Mapping[str, object]] = {"workload.name": "toy-graphs", "model.name": "gin"}

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import local_update

        model.load_shared(message.parameters)  # what the loss takes for the global model
        return local_update(model, data, message, task, self.loss(model.module, task.objective)), None

    def loss(self, module: Module, objective: Objective = CLASSIFICATION) -> Loss:
        """The local loss, with the module's present values as the global model."""
        from raysim.training.frozen_features import frozen_features

        if self.contrast == 0.0 and self.structure == 0.0:
            return lambda module, batch: objective.mean_loss(module(batch.x), batch.y)
        global_features = frozen_features(cast(Any, module).body)

        def loss(module: Module, batch: Batch) -> Tensor:
            parts: Any = module
            features = parts.body(batch.x)
            received = global_features(batch.x)
            total = objective.mean_loss(parts.head(features), batch.y)
            if self.contrast:
                total = total + self.contrast * contrast_loss(features, received, batch.y, self.temperature)
            if self.structure:
                total = total + self.structure * structure_loss(features, received, self.temperature)
            return total

        return loss


def contrast_loss(features: Tensor, received: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """−(1/B) Σ_i 1/|P_i| Σ_{p ∈ P_i} log softmax_j(cos(h_i, ĥ_j)/T)_p, P_i the graphs of i's class, i among them.

    The form of Khosla et al. 2020 (arXiv 2004.11362), Eq. 2, with local anchors and global partners.

    Args:
        features: h [B, h]. received: ĥ [B, h], no gradient. labels: y [B]. temperature: T > 0.
    """
    logs = (cosines(features, received) / temperature).log_softmax(dim=1)
    positive = (labels[:, None] == labels[None, :]).to(logs.dtype)
    return -((logs * positive).sum(dim=1) / positive.sum(dim=1)).mean()


def structure_loss(features: Tensor, received: Tensor, temperature: float) -> Tensor:
    """(1/B) Σ_i KL(p̂_i ‖ p_i), p_i = softmax over j ≠ i of cos(h_i, h_j)/T and p̂_i the same of ĥ.

    It is zero for a batch of one graph, which has no other to be similar to.
    """
    import torch

    count = len(features)
    if count < 2:
        return features.new_zeros(())
    others = ~torch.eye(count, dtype=torch.bool, device=features.device)

    def logs(values: Tensor) -> Tensor:
        return (cosines(values, values)[others].view(count, count - 1) / temperature).log_softmax(dim=1)

    return torch.nn.functional.kl_div(logs(features), logs(received), reduction="batchmean", log_target=True)


def cosines(one: Tensor, other: Tensor) -> Tensor:
    """cos(one_i, other_j) [B, B]; zero where a feature vector is zero (all units of a ReLU off)."""
    from torch.nn.functional import normalize

    return normalize(one, dim=1) @ normalize(other, dim=1).T


METHOD = FGSSL
