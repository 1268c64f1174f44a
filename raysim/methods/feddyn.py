"""FedDyn: a linear term that every client adapts makes the optima of the local losses agree with the global one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from raysim.aggregators.means import mean_of_parameters, plain_mean
from raysim.method import ClientTask, Context, FlatModel, Message, Traits, Update, Updates, Vector, WholeModel
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, Positive


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """θ, the shared entries of the global model [d]: parameters, then BatchNorm's statistics."""
    correction: Vector
    """h, −α times the mean over all clients of all their changes so far, over the p parameters alone [p]."""


@dataclass(frozen=True)
class FedDyn(WholeModel[Server, Vector]):
    """FedDyn: clients minimize L_k(w) − ⟨g_k, w⟩ + (α/2)‖w − θ‖², with g_k their own gradient at their last optimum.

    Source: Acar et al. 2021, Federated learning based on dynamic regularization (ICLR; arXiv 2111.04263), Algorithm 1.
    From θ on, client k of the cohort S, of N clients, trains to w_k and renews g_k, at first 0; the server renews h, at
    first 0, and corrects the plain mean of the cohort:

        g_k ← g_k − α (w_k − θ),    h ← h − (α/N) Σ_{k∈S} (w_k − θ),    θ ← (1/|S|) Σ_{k∈S} w_k − h/α.

    Decided here:
    - The local minimum is approached by the run's local training, as in the paper's experiments. The reported
      ``train_loss`` is L_k alone.
    - α is the same for all clients, as printed; the authors' code divides it by N times a client's share of the data.
    - N counts all clients of the run, late joiners (``schedule.joins``) from the start. A client that failed and was
      skipped keeps its g_k and is in neither sum; |S| is the number of updates.
    - BatchNorm's statistics, which have no gradient, are averaged.
    - Stale updates: h takes w_k − θ of the θ that client k received, unweighted like g_k, and so h is the mean of all
      g_k in every mode; only the mean of the w_k is by staleness.
    """

    alpha: Annotated[Positive, Help("weight α of the terms", "0.01 or 0.1 in Acar et al. 2021, Section 4")] = 0.01

    traits: ClassVar[Traits] = Traits(
        one_vector=True, one_model=True, plain_training=True, reports=("correction_norm",), takes_stale=True
    )

    def init_server(self, model: FlatModel) -> Server:
        return Server(model.take_shared(), self.init_client(model))

    def init_client(self, model: FlatModel) -> Vector:
        return np.zeros(model.shared_parameter_count, np.float32)

    def message(self, server: Server, client: int) -> Message:
        return Message(server.parameters)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        import torch

        from raysim.training.local_sgd import train_epochs

        model.load_shared(message.parameters)
        anchor = model.shared_parameters.clone()
        linear = torch.tensor(state, device=model.device)

        def add_terms(model: FlatModel) -> None:
            model.shared_gradient.add_(model.shared_parameters - anchor, alpha=self.alpha).sub_(linear)

        trained = train_epochs(model, data.train, task, add_gradient=add_terms)
        change = model.change_from(message.parameters)
        return Update(change, trained.metrics()), state - np.float32(self.alpha) * change[: len(state)]

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        arrived, trained = len(updates.clients), slice(context.shared_parameter_count)
        change = mean_of_parameters(updates.deltas, context.shared_parameter_count, updates.samples)
        taking_part = arrived / context.cohort.existing
        own = change if updates.unweighted is None else plain_mean(updates.changes)
        correction = server.correction - np.float32(self.alpha * taking_part) * own[trained]
        change[trained] -= correction / np.float32(self.alpha)
        context.report.round("correction_norm", float(np.linalg.norm(correction)))
        return Server(server.parameters + change, correction)


METHOD = FedDyn
