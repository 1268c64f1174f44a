"""FedLD: margin control in local training, principal gradients on the server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.gram import Doubles, combine, eigenvalue_shares, mean_cosine, piece_grams, step_shares
from raysim.aggregators.means import sample_weights
from raysim.aggregators.principal_gradients import authors_coefficients, axes_kept, principal_coefficients
from raysim.method import ClientTask, Context, FlatModel, Loss, Message, Module, Tensor, Traits, Update, Updates, Vector
from raysim.methods._halves import StatelessClients
from raysim.workloads.federated_data import ClientData
from raysim.workloads.objective import CLASSIFICATION, Margin, Objective, margin_term
from raysim.workloads.option_types import Help, NonNegative, OnlyWith, Positive, PositiveShare

REPORTS = (
    "principal_axes",
    "mean_cosine",
    "largest_eigenvalue_share",
    "smallest_eigenvalue_share",
    "smallest_client_step_share",
)
"""Columns of the rounds table with principal gradients."""
PRINCIPAL = OnlyWith("method.principal", True)


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """θ [d]."""
    boundaries: NDArray[np.int64]
    """The pieces of the shared vector that are projected each by itself [pieces + 1], up to the first entry that is
    averaged by samples: ``aggregate`` does not see the model."""


@dataclass(frozen=True)
class FedLD(StatelessClients[Server]):
    """FedLD: penalize large logits in local training, turn clients' updates toward their principal directions.

    Source: Zeng et al. 2024, Tackling data heterogeneity in federated learning via loss decomposition: Eq. 3 (margin
    control) and Eq. 4-7 (aggregators/principal_gradients.py). Ablations: ``--margin_weight 0`` is without margin
    control, ``--principal false`` without principal gradients, which leaves the mean by samples; with both it is
    FedAvg, bit for bit. Either goes with other methods: ``--training.margin`` (with FedLD both weights count) and
    ``--defense.rule principal``.

    Departures from the print: as printed the calibration of Eq. 6 has no effect (⟨g, v⟩v does not change with the sign
    of v); ``conflict drop`` gives it the effect that the text claims. BatchNorm's running statistics are no gradients:
    they are averaged by samples, at rate 1. The reported ``train_loss`` includes the margin term.

    The authors' code departs from their paper: ``granularity authors`` is what it does (each tensor by itself, those
    statistics too, after a first round of plain averaging; aggregators/principal_gradients.py has the rule).

    Columns of the rounds table: ``principal_axes`` K; ``mean_cosine`` of pairs of updates; the largest and the smallest
    λ_k / Σλ; and the share in the step of the client with the fewest samples (``step_share`` in the clients table). All
    but K are of the parameters as one vector.
    """

    margin_weight: Annotated[
        NonNegative,
        Help(
            "weight λ of margin control; 0 switches it off (Retina 0.1/0.03/0.03 by split, COVID-FL 0.01)",
            "Zeng et al. 2024, Eq. 3 and section 3.1",
        ),
    ] = 0.03
    margin: Annotated[
        Margin,
        Help(
            "l2: mean of |z|² over a batch's logits z (the paper); log: mean of log(1 + |z|²); "
            "softmax_log: log(1 + |softmax(z)|²) of the whole batch (the authors' code)",
            "Zeng et al. 2024, Eq. 3",
        ),
    ] = "l2"
    principal: Annotated[
        bool,
        Help(
            "aggregate by principal gradients; false: sample-weighted mean",
            "Zeng et al. 2024, Eq. 4-7",
        ),
    ] = True
    share: Annotated[
        PositiveShare,
        Help(
            "share of the axes that are kept: K = max(1, floor(share * participants))", "Zeng et al. 2024, section 3.1"
        ),
        PRINCIPAL,
    ] = 0.8
    conflict: Annotated[
        Literal["keep", "drop"],
        Help(
            "a client's component against the calibrated direction of an axis: keep (as printed) or drop it",
            "Zeng et al. 2024, Eq. 6-7",
        ),
        PRINCIPAL,
    ] = "keep"
    granularity: Annotated[
        Literal["model", "layer", "authors"],
        Help(
            "model: project whole updates (the paper); layer: each parameter tensor alone; authors: each "
            "tensor and BatchNorm's statistics, every axis brought to its length by itself, first round the mean",
            "Zeng et al. 2024 and the authors' code",
        ),
        PRINCIPAL,
    ] = "model"
    client_weights: Annotated[
        Literal["uniform", "samples"],
        Help(
            "weights of the clients in the mean of their projected gradients: uniform (the paper), or samples",
            "Zeng et al. 2024, Eq. 7",
        ),
        PRINCIPAL,
    ] = "uniform"
    server_learning_rate: Annotated[Positive, Help("factor of the aggregated update")] = 1.0

    @property
    def traits(self) -> Traits:
        plain = self.margin_weight == 0
        return Traits(
            weighted_mean=not self.principal,
            one_vector=self.principal,
            one_model=self.principal,
            single_step_gradient=plain,
            classification=not plain,
            reports=REPORTS if self.principal else (),
            needs_several="whose principal gradients are those of several updates" if self.principal else "",
        )

    def init_server(self, model: FlatModel) -> Server:
        stops = [model.shared_parameter_count]
        if self.granularity != "model":
            statistics = self.granularity == "authors"
            tensors = [entry for entry in model.entries if entry.shared and (entry.parameter or statistics)]
            stops = [entry.stop - tensors[0].start for entry in tensors]
        return Server(model.take_shared(), np.array([0, *stops], np.int64))

    def message(self, server: Server, client: int) -> Message:
        return Message(server.parameters)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import local_update

        loss = margin_control(self.margin, self.margin_weight, task.objective) if self.margin_weight else None
        return local_update(model, data, message, task, loss), None

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        step = self._principal_step(server, updates, context) if self.principal else updates.mean()
        step[: context.shared_parameter_count] *= np.float32(self.server_learning_rate)
        # In place, since the step is ours: one vector of length d less at the peak.
        return replace(server, parameters=np.add(server.parameters, step, out=step))

    def _principal_step(self, server: Server, updates: Updates, context: Context) -> Vector:
        """The weighted mean of the revised updates; as -g_i are the updates, this is what is added to θ."""
        boundaries, size = server.boundaries.tolist(), server.parameters.size
        samples, count = sample_weights(updates.samples), len(updates.clients)
        weights = samples if self.client_weights == "samples" else np.full(count, 1 / count)
        grams = piece_grams(updates.deltas, boundaries)
        if self.granularity == "authors" and context.round == 1:
            coefficients = [weights for _ in grams]
        else:
            rule = authors_coefficients if self.granularity == "authors" else principal_coefficients
            coefficients = [rule(gram, self.share, self.conflict, weights) for gram in grams]
        self._report(grams, coefficients, boundaries, updates, context)
        if boundaries[-1] < size:
            boundaries, coefficients = [*boundaries, size], [*coefficients, samples]
        return combine(updates.deltas, boundaries, [piece.tolist() for piece in coefficients])

    def _report(
        self,
        grams: list[Doubles],
        coefficients: list[Doubles],
        boundaries: list[int],
        updates: Updates,
        context: Context,
    ) -> None:
        pieces = sum(stop <= context.shared_parameter_count for stop in boundaries[1:])
        gram = np.sum(grams[:pieces], axis=0)
        eigenvalues, shares = eigenvalue_shares(gram), step_shares(grams[:pieces], coefficients[:pieces])
        context.report.round("principal_axes", float(axes_kept(len(gram), self.share)))
        context.report.round("mean_cosine", mean_cosine(gram))
        context.report.round("largest_eigenvalue_share", float(eigenvalues[0]))
        context.report.round("smallest_eigenvalue_share", float(eigenvalues[-1]))
        context.report.round("smallest_client_step_share", float(shares[int(np.argmin(updates.samples))]))
        context.report.clients("step_share", shares)
        if self.granularity == "model":
            context.report.clients("weight", coefficients[0])


def margin_control(margin: Margin, weight: float, objective: Objective = CLASSIFICATION) -> Loss:
    """Eq. 3: the loss of the data plus ``weight`` times the margin term of a mini-batch's logits [B, classes]."""

    def loss(module: Module, batch: Any) -> Tensor:
        logits = module(batch.x)
        return objective.mean_loss(logits, batch.y) + weight * margin_term(margin, logits)

    return loss


METHOD = FedLD
