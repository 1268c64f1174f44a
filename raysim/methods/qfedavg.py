"""q-FedAvg: clients with a larger loss pull harder, so that accuracy differs less between clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from raysim.aggregators.gram import combine
from raysim.aggregators.means import sample_weights
from raysim.method import ClientTask, Context, FlatModel, GlobalModel, Message, Traits, Update, Updates, Vector
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, NonNegative


@dataclass(frozen=True)
class QFedAvg(GlobalModel):
    """q-FedAvg: the server minimizes Σ_k p_k F_k^(q+1) / (q+1), F_k the loss of client k, instead of Σ_k p_k F_k.

    Source: Li et al. 2020, Fair resource allocation in federated learning (ICLR; arXiv 1905.10497), Algorithm 2. With
    L = 1/η the inverse of the local learning rate and F_k = F_k(θ) the loss on client k's training data of the model
    that it received, before it trains to θ_k:

        Δw_k = L (θ − θ_k),    h_k = q F_k^(q−1) ‖Δw_k‖² + L F_k^q,    θ⁺ = θ − Σ_k p_k F_k^q Δw_k / Σ_k p_k h_k.

    Decided here: cohorts are drawn uniformly, and not client k with probability p_k, so p_k = m_k / Σ_j m_j is a weight
    in both sums; q = 0 is FedAvg. Clients train by SGD, of which η is the rate. A loss below 10⁻¹⁰ counts as 10⁻¹⁰, as
    in the authors' code. ‖Δw_k‖ is over the parameters; BatchNorm's statistics are averaged by p_k. Of a stale update
    ‖Δw_k‖ is that of the client, with η of the round that it started in; staleness weighs Δw_k in the numerator alone.
    """

    q: Annotated[NonNegative, Help("how much larger losses count; 0: FedAvg", "Li et al. 2020, Eq. 2")] = 1.0

    defaults: ClassVar[Mapping[str, object]] = {"training.optimizer": "sgd"}

    @property
    def traits(self) -> Traits:
        return Traits(
            one_vector=True,
            one_model=True,
            reads="whose server reads the loss of the received model on a client's data",
            needs_several="which weighs the clients of a step by their losses",
            needs_sgd="which takes a client's change over η for a gradient" if self.q > 0 else "",
        )

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import local_update
        from raysim.workloads.metrics import evaluate

        model.load_shared(message.parameters)
        batches = data.train.batches(task.evaluation_batch)
        received = evaluate(model.module, batches, task.classes, objective=task.objective)
        update = local_update(model, data, message, task)
        return Update(update.delta, {**update.metrics, "received_loss": received.loss}), None

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        stop = context.shared_parameter_count
        rates = np.array(updates.learning_rates or [context.learning_rate] * len(updates.clients))
        shares, losses = sample_weights(updates.samples), np.maximum(updates.metric("received_loss"), 1e-10)
        squares = np.array([float(np.square(delta[:stop], dtype=np.float64).sum()) for delta in updates.changes])
        steps = self.q * losses ** (self.q - 1) * squares / rates**2 + losses**self.q / rates
        weights = shares * losses**self.q / rates / float(shares @ steps)
        context.report.clients("weight", weights)
        return server + combine(updates.deltas, [0, stop, server.size], [weights.tolist(), shares.tolist()])


METHOD = QFedAvg
