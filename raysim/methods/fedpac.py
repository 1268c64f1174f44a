"""FedPAC: one feature extractor for all, a head of its own for every client."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.classifier_combination import combination_weights
from raysim.aggregators.means import sample_weights, weighted_sum
from raysim.method import ClientTask, Context, FlatModel, Message, Tensor, Traits, Update, Updates, Vector
from raysim.methods._class_centroids import centroid_bytes, centroid_loss, feature_sums, mixed_centroids, own_centroids
from raysim.methods._halves import HEAD, SharedBody, load_head, take_head
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.federated_data import Batch, ClientData
from raysim.workloads.objective import Objective
from raysim.workloads.option_types import Help, NonNegative, NonNegativeInt, Positive


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """The body, BatchNorm's statistics included unless they stay with their clients [d]."""
    mean_head: Vector
    """Mean by samples of the heads trained in the last round; the initial head before the first."""
    heads: dict[int, Vector]
    """Each client's own combined head, from the last round that it took part in."""
    centroids: Vector
    """c [classes, features]; no rows before the first round."""
    centroid_samples: NDArray[np.int64]
    """Samples behind each centroid [classes]; zero: no client has had samples of the class yet."""


def extra_bytes(sizes: Sizes) -> ExtraBytes:
    """Head, weighted means of features and centroids go up; centroids, which the first message lacks, down."""
    up = 4 * (sizes.private + sizes.classes * sizes.features) + centroid_bytes(sizes)
    return ExtraBytes(up=up, down_later=centroid_bytes(sizes))


@dataclass(frozen=True)
class FedPAC(SharedBody[Server, None]):
    """FedPAC: averaged body aligned to global class centroids, and for each client the best mixture of all heads.

    Source: Xu et al. 2023, Personalized federated learning with feature alignment and classifier collaboration (arXiv
    2306.11867), Algorithm 1; the mixture is in aggregators/classifier_combination.py. A client task: feature statistics
    (V, E[h|c]) with the body as it came, then the head alone, then the body alone, then the centroids of the new body.
    The head is what is named ``head.*``, the body all else.

    Where the paper is open: a client without a head of its own (new, joined late) starts from the last round's mean
    head; a client that was not sampled keeps its last one; the centroid of a class stays as it was in a round whose
    clients have no samples of the class. A class has no centroid until a client with samples of it has taken part:
    until then a client's own mean features of the class take its place, as in the authors' code. Statistics and
    centroids are computed in evaluation mode; BatchNorm's statistics also move while the head trains. With
    ``training.batchnorm_statistics local`` they stay with their client, those of a head too, and are not combined.
    The alignment term is divided by the number of features, as in the authors' code (``distance mean``); the plain
    sum of the print outweighs the cross-entropy on wide features, so that all of them collapse into one point.
    """

    head_epochs: Annotated[NonNegativeInt, Help("epochs on the head alone, body frozen", "Xu et al. 2023")] = 1
    head_learning_rate: Annotated[Positive, Help("learning rate of the head", "Xu et al. 2023")] = 0.1
    alignment: Annotated[
        NonNegative,
        Help("weight λ of |h - c_y|², the distance to the global class centroid, from round 2 on", "Xu et al. 2023"),
    ] = 1.0

    distance: Annotated[
        Literal["sum", "mean"],
        Help("|h - c_y|² is the mean over features (the authors' code), or their sum (the print)"),
    ] = "mean"

    traits: ClassVar[Traits] = Traits(
        personal=True,
        same_task=True,
        classification=True,
        model_parts=("body.", HEAD),
        head_of_body=True,
        extra_bytes=extra_bytes,
        needs_several="whose heads and class centroids are combined from several clients",
    )

    def init_server(self, model: FlatModel) -> Server:
        nothing = np.zeros((0, 0), np.float32)
        return Server(model.take_shared(), take_head(model), {}, nothing, np.zeros(0, np.int64))

    def init_client(self, model: FlatModel) -> None:
        return None

    def message(self, server: Server, client: int) -> Message:
        extra = {
            "head": server.heads.get(client, server.mean_head),
            "centroids": server.centroids,
            "centroid_samples": server.centroid_samples,
        }
        return Message(server.parameters, extra)

    def deploy(self, model: FlatModel, message: Message, state: None) -> None:
        model.load_shared(message.parameters)
        load_head(model, message.extra["head"])

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import Phase, train_epochs

        self.deploy(model, message, state)
        sums, counts, squares = feature_sums(model, data.train, task)
        samples = counts.sum()
        weighted_means = sums / samples  # a_c = π_c E[h|c]
        variance = (squares / samples - float(np.square(weighted_means).sum())) / samples
        head = train_epochs(
            model,
            data.train,
            task,
            partial(head_loss, objective=task.objective),
            trains=lambda name: name.startswith(HEAD),
            phase=Phase("shuffle head", self.head_epochs, self.head_learning_rate),
        )
        features = sums.shape[1]
        aligned = centroid_loss(
            model,
            message,
            self.alignment / (features if self.distance == "mean" else 1),
            task.objective,
            sums / np.maximum(counts, 1)[:, None],
        )
        body = train_epochs(model, data.train, task, aligned, trains=lambda name: not name.startswith(HEAD))
        new_sums, _, _ = feature_sums(model, data.train, task)
        extra = {
            "head": take_head(model),
            "weighted_means": weighted_means.astype(np.float32),
            **own_centroids(new_sums, counts),
        }
        metrics = body.metrics() | {"steps": float(head.steps + body.steps), "head_variance": variance}
        return Update(model.change_from(message.parameters), metrics, extra), None

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        extras = [update.extra for update in updates.each]
        heads = [extra["head"] for extra in extras]
        weights = combination_weights(
            updates.metric("head_variance"), np.stack([extra["weighted_means"] for extra in extras])
        )
        context.report.clients("own_head_weight", np.diag(weights).copy())
        combined = {
            client: weighted_sum(heads, row.tolist()) for client, row in zip(updates.clients, weights, strict=True)
        }
        centroids, known = mixed_centroids(server.centroids, server.centroid_samples, updates.each)
        mean_head = weighted_sum(heads, sample_weights(updates.samples).tolist())
        return Server(server.parameters + updates.mean(), mean_head, server.heads | combined, centroids, known)


def head_loss(module: Any, batch: Batch, objective: Objective) -> Tensor:
    """The loss of the data as a function of the head alone: no backward pass through the body."""
    import torch

    with torch.no_grad():
        features = module.body(batch.x)
    return objective.mean_loss(module.head(features), batch.y)


METHOD = FedPAC
