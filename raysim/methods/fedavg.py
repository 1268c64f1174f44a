"""Federated averaging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raysim.method import ClientTask, Context, FlatModel, GlobalModel, Message, Traits, Update, Updates, Vector
from raysim.workloads.federated_data import ClientData


@dataclass(frozen=True)
class FedAvg(GlobalModel):
    """FedAvg: every client trains the global model, the server takes the mean weighted by samples.

    Source: McMahan et al. 2017, Communication-efficient learning of deep networks from decentralized data, Algorithm 1.
    θ⁺ = Σ_k p_k θ_k with p_k = m_k / Σ_j m_j; written here as θ + Σ_k p_k (θ_k − θ).
    """

    traits: ClassVar[Traits] = Traits(weighted_mean=True, single_step_gradient=True, plain_training=True)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import train_epochs

        model.load_shared(message.parameters)
        trained = train_epochs(model, data.train, task)
        return Update(model.change_from(message.parameters), trained.metrics()), None

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        return server + updates.mean()


METHOD = FedAvg
