"""Federated averaging with a proximal term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from raysim.method import ClientTask, FlatModel, Message, Update
from raysim.methods.fedavg import FedAvg
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, NonNegative


@dataclass(frozen=True)
class FedProx(FedAvg):
    """FedProx: FedAvg whose local loss holds the model near the global one: F_k(w) + (μ/2)‖w − θ‖².

    Source: Li et al. 2020, Federated optimization in heterogeneous networks, Eq. 2 and Algorithm 2 (without its
    partial work of stragglers). The term is over the shared parameters, not over BatchNorm's running statistics.
    The reported ``train_loss`` is the cross-entropy alone; ``proximal`` is the value of the term after training, which
    is not known of clients whose single steps are merged (the term's gradient at θ is 0).
    """

    mu: Annotated[NonNegative, Help("weight μ of the proximal term", "Li et al. 2020, Eq. 2")] = 0.01

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import train_epochs

        model.load_shared(message.parameters)
        anchor = model.shared_parameters.clone()

        def add_proximal_gradient(model: FlatModel) -> None:
            model.shared_gradient.add_(model.shared_parameters - anchor, alpha=self.mu)

        trained = train_epochs(model, data.train, task, add_gradient=add_proximal_gradient)
        distance = float((model.shared_parameters - anchor).double().square().sum())
        metrics = trained.metrics() | {"proximal": self.mu / 2 * distance}
        return Update(model.change_from(message.parameters), metrics), None


METHOD = FedProx
