"""FedGTA: clients whose predictions are spread alike over their graphs are averaged, sure ones with more weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.method import ClientTask, Context, FlatModel, Message, Tensor, Traits, Update, Updates
from raysim.methods._model_for_each import COMPARES, ModelForEach, Server
from raysim.methods._node_graphs import all_nodes, spread_labels, training_nodes
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Ge, Help, OpenShare, Positive, PositiveInt


@dataclass(frozen=True)
class FedGTA(ModelForEach[None]):
    """FedGTA: a model for each client, the mean of the models of clients with similar moments, by their confidence.

    Source: Li et al. 2023, FedGTA: Topology-aware averaging for federated graph learning (VLDB; arXiv 2401.11755), and
    the authors' code. After its local training a client spreads its predictions over its graph: with Y⁰ the softmax of
    the logits, or the label of a training node, and Â = D̃^{-1/2} (A + I) D̃^{-1/2},

        Yᵏ = (1 − α) Y⁰ + α Â Yᵏ⁻¹,  k = 1 … K;   P = softmax(Yᴷ),  Q = softmax(Yᴷ / T),

    P and Q of training nodes again the label. It sends its confidence H and the moments M of every class c:

        H = Σ_v d̃_v Σ_c (1/e + Q_vc log Q_vc),   M = (mean_v P_vcᵏ, mean_v (P_vc − mean P_c)ᵏ),  k = 1 … orders.

    The server gives client i the model Σ_{j ∈ S_i} H_j θ_j / Σ_{j ∈ S_i} H_j, S_i = {j : cos(M_i, M_j) > threshold},
    in which i always is.

    Decided here: moments are those of the last step, as in the code (in print of all K). d̃ counts the loop, as printed,
    so that a client without edges has a confidence too. The code adds the labels of training nodes once more to every
    Yᵏ; here they are in Y⁰ alone, as printed. A client that was in no round yet receives the uniform mean.
    """

    steps: Annotated[PositiveInt, Help("K, steps of label propagation", "Li et al. 2023")] = 5
    alpha: Annotated[OpenShare, Help("α, share of the neighbors in a step", "Li et al. 2023")] = 0.5
    temperature: Annotated[Positive, Help("T of the softmax of the confidence", "Li et al. 2023 (code)")] = 20.0
    orders: Annotated[PositiveInt, Help("orders of the moments", "Li et al. 2023 (code): 6 on Cora")] = 6
    moments: Annotated[
        Literal["raw", "central", "both"], Help("moments about 0, about the mean, or both", "Li et al. 2023 (code)")
    ] = "both"
    threshold: Annotated[
        float, Ge(-1.0), Help("least cosine of moments with which clients are averaged", "Li et al. 2023 (code)")
    ] = 0.5

    defaults: ClassVar[Mapping[str, object]] = {"workload.name": "nodes", "model.name": "gamlp"}

    @property
    def traits(self) -> Traits:
        return Traits(
            personal=True,
            same_task=True,
            classification=True,
            node_graphs=True,
            extra_bytes=self._extra_bytes,
            reports=("averaged_clients",),
            needs_several=COMPARES,
        )

    def _extra_bytes(self, sizes: Sizes) -> ExtraBytes:
        return ExtraBytes(up=4 * (1 + self._kinds * self.orders * sizes.classes))

    @property
    def _kinds(self) -> int:
        return 2 if self.moments == "both" else 1

    def init_client(self, model: FlatModel) -> None:
        return None

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        import torch

        from raysim.training.local_sgd import local_update

        update = local_update(model, data, message, task)
        batch, labels = training_nodes(data)
        model.module.eval()
        with torch.no_grad():
            logits = model.module(all_nodes(batch))
            spread = self.propagated(batch.graph.spread, logits.softmax(1), batch.nodes, labels)
            sure = known((spread / self.temperature).softmax(1), batch.nodes, labels)
            degrees = torch.bincount(batch.edge_index[0], minlength=batch.num_nodes) + 1
            moments = self.moments_of(known(spread.softmax(1), batch.nodes, labels))
        extra = {
            "confidence": np.array([confidence(sure, degrees)], np.float32),
            "moments": moments.cpu().numpy().astype(np.float32),
        }
        return Update(update.delta, update.metrics, extra), None

    def propagated(
        self, spread: Callable[[Tensor], Tensor], predicted: Tensor, nodes: Tensor, labels: Tensor
    ) -> Tensor:
        """Yᴷ [n, C].

        Args:
            spread: multiplies [n, C] by Â.
            predicted: softmax of the logits [n, C].
            nodes: training nodes [B].
            labels: their labels [B].
        """
        return spread_labels(spread, known(predicted, nodes, labels), self.steps, self.alpha)

    def moments_of(self, predicted: Tensor) -> Tensor:
        """M [orders · C], raw and then central moments [2 · orders · C] with ``both``, of P [n, C]."""
        import torch

        centered = predicted - predicted.mean(0)
        kinds = {"raw": (predicted,), "central": (centered,), "both": (predicted, centered)}[self.moments]
        return torch.cat([(values**order).mean(0) for values in kinds for order in range(1, self.orders + 1)])

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        extras = [update.extra for update in updates.each]
        moments = np.stack([extra["moments"] for extra in extras]).astype(np.float64)
        confidences = np.array([float(extra["confidence"][0]) for extra in extras])
        weights = self.weights(moments, confidences)
        context.report.round("averaged_clients", float((weights > 0).sum(1).mean()))
        context.report.clients("confidence", confidences)
        return self.mixed(server, updates, weights)

    def weights(self, moments: NDArray[np.float64], confidences: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights [n, n] of the clients' models in each client's, from M [n, …] and H [n]."""
        lengths = np.maximum(np.linalg.norm(moments, axis=1), 1e-12)
        cosines = moments @ moments.T / np.outer(lengths, lengths)
        alike = (cosines > self.threshold) | np.eye(len(moments), dtype=bool)
        weights = np.where(alike, np.maximum(confidences, 1e-12)[None], 0.0)
        found: NDArray[np.float64] = weights / weights.sum(1, keepdims=True)
        return found


def known(predicted: Tensor, nodes: Tensor, labels: Tensor) -> Tensor:
    """Predictions [n, C] with the label of each training node in the place of its prediction."""
    import torch

    values = predicted.clone()
    values[nodes] = torch.nn.functional.one_hot(labels, predicted.shape[1]).to(predicted.dtype)
    return values


def confidence(predicted: Tensor, degrees: Tensor) -> float:
    """H of Q [n, C] and d̃ [n], with 0 log 0 = 0: at least 0, as no x log x is below −1/e."""
    import torch

    terms = torch.special.xlogy(predicted, predicted).double().sum(1) + predicted.shape[1] / math.e
    return float((degrees * terms).sum())


METHOD = FedGTA
