"""FedRAD: random communication and dynamic aggregation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.dynamic_weights import (
    LOSS_BOUND,
    NeuNet,
    accuracy_weights,
    coefficient_gradient,
    coefficients,
    estimated_gradient,
    learn,
    updated_weights,
)
from raysim.aggregators.means import plain_mean, sample_weights, weighted_sum
from raysim.method import ClientTask, Context, FlatModel, Message, Tensor, Traits, Update, Updates, Vector
from raysim.methods._halves import StatelessClients
from raysim.schedule import random_communication
from raysim.seeds import numpy_generator
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, NonNegative, OnlyWith, PositiveInt

REPORTS: Mapping[str, tuple[str, ...]] = {
    "plain": (),
    "weighted": ("system_loss",),
    "dynamic": ("system_loss", "neunet_correction"),
}
"""Columns of the rounds table, by ``aggregation``."""
DYNAMIC = OnlyWith("method.aggregation", "dynamic")
NEEDS_SGD = (
    "which reads the gradient of SysLoss off the updates of sgd without a past; with method.system_gradient exact any "
    "optimizer will do"
)


@dataclass(frozen=True)
class LastRound:
    """The last round's inputs of NeuNet and the updates that it weighed: it learns from them one round later."""

    weights: NDArray[np.float64]
    """W of Eq. 2 [n]; n = 0 before the first round."""
    losses: NDArray[np.float64]
    """Each client's loss under the global model [n]."""
    samples: NDArray[np.int64]
    """m_k [n]."""
    deltas: Vector
    """Δ_k, parameters only [n, P]."""


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """θ [d]."""
    neunet: NeuNet
    last: LastRound


def gradient_bytes(sizes: Sizes) -> ExtraBytes:
    """The gradient of a client's test loss."""
    return ExtraBytes(up=4 * sizes.parameters)


@dataclass(frozen=True)
class FedRAD(StatelessClients[Server]):
    """FedRAD: communicate at random epochs in the second half, weigh clients by accuracy, let a network correct it.

    Source: Huang et al. 2021, Federated learning with random communication and dynamic aggregation: Algorithm 1
    (:func:`raysim.schedule.random_communication`), Eq. 1–2 and Algorithm 2 (``aggregate``), Eq. 3
    (aggregators/dynamic_weights.py) and Algorithm 3.
    Ablations of the paper: Ran-Com = ``--random_intervals true --aggregation plain``, Wei-Agg = ``false, weighted``,
    Dyn-Agg = ``false, dynamic``.

    Departures from the print: Eq. 1's coefficients W_k m_k/m do not sum to one, which would shrink the model, so they
    are normalized; NeuNet, whose input, output and gradient the paper leaves open, is one small network shared by all
    clients, W' = softmax(log W + logit), trained with ∂SysLoss/∂c_k = ⟨∇SysLoss(θ), Δ_k⟩ one round later. BatchNorm
    statistics are averaged with the same coefficients, but play no part in that gradient.
    """

    defaults: ClassVar[Mapping[str, object]] = {
        "training.optimizer": "sgd"
    }  # what the estimate of ∇SysLoss is made for

    random_intervals: Annotated[
        bool, Help("communicate at random epochs in the second half of the run", "Algorithm 1")
    ] = True
    aggregation: Annotated[
        Literal["plain", "weighted", "dynamic"],
        Help(
            "plain: mean by samples; weighted: by squared accuracy (Wei-Agg); dynamic: corrected by NeuNet", "Eq. 1-3"
        ),
    ] = "dynamic"
    neunet_rate: Annotated[
        NonNegative,
        Help("learning rate η of NeuNet", "Eq. 3 (no value printed; docs/fedrad-cifar10.md)"),
        DYNAMIC,
    ] = 10.0
    neunet_hidden: Annotated[PositiveInt, Help("hidden units of NeuNet"), DYNAMIC] = 16
    system_gradient: Annotated[
        Literal["estimate", "exact"],
        Help(
            "gradient of SysLoss: estimate it from the round's updates (free, needs sgd), or exact: clients "
            "also return the gradient of their test loss (one more pass over it, and upload doubled)"
        ),
        DYNAMIC,
    ] = "estimate"

    @property
    def traits(self) -> Traits:
        dynamic, exact = self.aggregation == "dynamic", self.system_gradient == "exact"
        return Traits(
            weighted_mean=self.aggregation == "plain",
            one_vector=self.aggregation != "dynamic" or self.system_gradient == "estimate",
            one_model=True,
            reads="" if self.aggregation == "plain" else "whose server reads losses and accuracies of clients' tests",
            intervals=random_communication if self.random_intervals else None,
            local_tests=self.aggregation != "plain",
            classification=self.aggregation != "plain",
            needs_sgd=NEEDS_SGD if dynamic and not exact else "",
            extra_bytes=gradient_bytes if dynamic and exact else None,
            reports=REPORTS[self.aggregation],
            needs_several="" if self.aggregation == "plain" else "which weighs the clients of a step by their accuracy",
        )

    # -- server: before the first round -----------------------------------------------------------------------------

    def init_server(self, model: FlatModel) -> Server:
        none = np.zeros(0, np.float64)
        last = LastRound(none, none, np.zeros(0, np.int64), np.zeros((0, model.shared_parameter_count), np.float32))
        return Server(model.take_shared(), self._new_neunet(seed=0), last)

    def _new_neunet(self, seed: int) -> NeuNet:
        return NeuNet.create(numpy_generator(seed, "neunet"), self.neunet_hidden)

    def message(self, server: Server, client: int) -> Message:
        return Message(server.parameters)

    # -- client: Algorithm 3, lines 9 to 12 -------------------------------------------------------------------------

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import train_epochs
        from raysim.workloads.metrics import evaluate

        if self.aggregation == "plain":
            return super().train(model, data, message, state, task)

        model.load_shared(message.parameters)

        def on_local_test() -> Any:
            return evaluate(model.module, data.test.batches(task.evaluation_batch), task.classes)

        before = on_local_test()
        extra = {}
        if self.aggregation == "dynamic" and self.system_gradient == "exact":
            extra["test_gradient"] = _test_gradient(model, data, task)
        trained = train_epochs(model, data.train, task)
        after = on_local_test()
        metrics = trained.metrics() | {"system_loss": before.loss, "local_accuracy": after.accuracy}
        return Update(model.change_from(message.parameters), metrics, extra), None

    # -- server: Algorithm 2 ----------------------------------------------------------------------------------------

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        if self.aggregation == "plain":
            return replace(server, parameters=server.parameters + updates.mean())
        weights = accuracy_weights(updates.metric("local_accuracy"))
        # A model that is finite can still overflow on somebody's test set; NeuNet clips there, and so does the record.
        losses = np.nan_to_num(updates.metric("system_loss"), nan=LOSS_BOUND, posinf=LOSS_BOUND)
        context.report.round("system_loss", float(losses.mean()))
        neunet, last = server.neunet, server.last
        if self.aggregation == "dynamic":
            parameters_only = [delta[: context.shared_parameter_count] for delta in updates.deltas]
            # The seed is first known in the first round.
            neunet = self._learned(server, updates, context) if last.weights.size else self._new_neunet(context.seed)
            last = LastRound(weights, losses, updates.samples, np.stack(parameters_only))
            corrected = updated_weights(neunet, weights, sample_weights(updates.samples), losses)
            context.report.round("neunet_correction", float(np.abs(corrected - weights).max()))
            weights = corrected
        shares = coefficients(weights, updates.samples)
        context.report.clients("weight", shares)
        return Server(server.parameters + weighted_sum(updates.deltas, shares.tolist()), neunet, last)

    def _learned(self, server: Server, updates: Updates, context: Context) -> NeuNet:
        """One step of NeuNet: SysLoss was measured on the model that the last round's weights made."""
        last = server.last
        if self.system_gradient == "exact":
            # SysLoss is the plain mean of the clients' losses (Algorithm 2, line 6), so is its gradient.
            gradients = [update.extra["test_gradient"] for update in updates.each]
            system_gradient = plain_mean(gradients)
        else:
            system_gradient = estimate(server, updates, context)
        by_coefficient = coefficient_gradient(system_gradient, list(last.deltas))
        shares = sample_weights(last.samples)
        return learn(server.neunet, last.weights, shares, last.losses, last.samples, by_coefficient, self.neunet_rate)


def estimate(server: Server, updates: Updates, context: Context) -> Vector:
    """∇SysLoss [P], read off the clients' own changes: of stale ones before they were weighted.

    The gradient of ``training.margin``, where that is set, stays in it.
    """
    training, trained = context.training, slice(context.shared_parameter_count)
    deltas, steps = [change[trained] for change in updates.changes], updates.metric("steps").astype(np.int64)
    rates = np.array(updates.learning_rates or [context.learning_rate] * len(deltas))
    gradient = estimated_gradient(deltas, updates.samples, rates, steps, training.momentum)
    if training.weight_decay:  # SGD adds its gradient, which is none of SysLoss
        start = server.parameters[trained]
        if updates.bases is not None:
            start = weighted_sum([base[trained] for base in updates.bases], sample_weights(updates.samples).tolist())
        gradient -= np.float32(training.weight_decay) * start
    return gradient


def _test_gradient(model: FlatModel, data: ClientData, task: ClientTask) -> Vector:
    """∇ of the client's mean test loss at the global parameters (shared parameters only) [P]."""
    from raysim.flat_model import to_numpy
    from raysim.training.local_sgd import cross_entropy

    model.module.eval()  # as SysLoss itself is measured: BatchNorm with its running statistics
    model.gradient.zero_()
    for batch in data.test.batches(task.evaluation_batch):
        loss: Tensor = cross_entropy(model.module, batch) * (len(batch) / len(data.test))
        loss.backward()
    gradient = to_numpy(model.shared_gradient)
    model.gradient.zero_()
    return gradient


METHOD = FedRAD
