"""FedProto: clients with models of their own share the mean features of every class, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.method import NOTHING, ClientTask, Context, FlatModel, Message, Module, Traits, Update, Updates, Vector
from raysim.methods._class_centroids import centroid_bytes, centroid_loss, feature_sums, mixed_centroids, own_centroids
from raysim.methods._halves import PartlyShared
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, NonNegative


@dataclass(frozen=True)
class Prototypes:
    centroids: Vector
    """C̄ [classes, features]; no rows before the first round."""
    centroid_samples: NDArray[np.int64]
    """Samples behind each prototype [classes]; zero: no client has had samples of the class yet."""


def extra_bytes(sizes: Sizes) -> ExtraBytes:
    """Prototypes, which the first message lacks."""
    return ExtraBytes(up=centroid_bytes(sizes), down_later=centroid_bytes(sizes))


@dataclass(frozen=True)
class FedProto(PartlyShared[Prototypes]):
    """FedProto: local models whose features are drawn to the prototype of their class, the mean over all clients.

    Source: Tan et al. 2022, FedProto: federated prototype learning across heterogeneous clients (AAAI; arXiv
    2105.00243), Algorithm 1. With h [features] what the head receives, client i trains its own model on

        CE + λ · mean over the batch of d(h, C̄_y)                                                            (Eq. 5)

    and sends C_i^(k), the mean features of its samples of each class k, with which the server makes C̄^(k). A client is
    judged on its own test set by argmin_k ‖h − C̄^(k)‖₂, h the features of its own model and C̄ the prototypes that the
    server has by then: the paper's prediction, and PFLlib's. The authors' code prints this and the accuracy of the
    client's own head (``predict head``).

    Decided here:
    - d is the squared distance of each sample's features, divided by their number, as in the authors' code. Eq. 5 as
      printed has the distance between the client's class mean C_i^(k) and C̄^(k), summed over classes.
    - C̄^(k) = Σ_i m_ik C_i^(k) / Σ_i m_ik, the mean over all samples of the class. Eq. 6 as printed divides this once
      more by the number of clients; the authors' code takes the plain mean over clients.
    - The prototype of a class stays as it was in a round whose clients have no samples of the class. Samples of a class
      that has no prototype yet have CE alone, and such a class is not predicted. Before the first round there is no
      prototype, and the head predicts.
    - Loss and AUC need probabilities, of which the paper has none: they are the softmax of −‖h − C̄^(k)‖₂²
      (raysim/methods/_nearest_prototype.py), whose loss is not on the scale of a head's. All start from the same
      values.
    """

    pull: Annotated[NonNegative, Help("weight λ of the distance to the prototypes", "Tan et al. 2022, Section 5")] = 1.0
    predict: Annotated[
        Literal["prototypes", "head"],
        Help(
            "a client is judged by the nearest prototype of the server (the paper), or by its own head",
            "Tan et al. 2022",
        ),
    ] = "prototypes"

    traits: ClassVar[Traits] = Traits(
        personal=True,
        same_task=True,
        classification=True,
        model_parts=("body.", "head."),
        head_of_body=True,
        extra_bytes=extra_bytes,
        needs_several="whose prototypes are means over the clients of a step",
    )

    def extend(self, module: Module) -> Module:
        if self.predict == "head":
            return module
        from raysim.methods._nearest_prototype import NearestPrototype

        return NearestPrototype(module)

    def shared_names(self, module: object) -> tuple[str, ...]:
        return ()

    def init_server(self, model: FlatModel) -> Prototypes:
        return Prototypes(np.zeros((0, 0), np.float32), np.zeros(0, np.int64))

    def message(self, server: Prototypes, client: int) -> Message:
        return Message(NOTHING, {"centroids": server.centroids, "centroid_samples": server.centroid_samples})

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.training.local_sgd import train_epochs

        model.load_private(state)
        features = message.extra["centroids"].shape[1] or 1
        loss = centroid_loss(model, message, self.pull / features, task.objective)
        trained = train_epochs(model, data.train, task, loss)
        sums, counts, _ = feature_sums(model, data.train, task)
        return Update(NOTHING, trained.metrics(), own_centroids(sums, counts)), model.take_private()

    def deploy(self, model: FlatModel, message: Message, state: Vector) -> None:
        from raysim.flat_model import as_tensor

        model.load_private(state)
        centroids = message.extra["centroids"]
        if self.predict == "prototypes" and centroids.size:
            module: Any = model.module
            module.prototypes.copy_(as_tensor(centroids))
            module.known.copy_(as_tensor((message.extra["centroid_samples"] > 0).astype(np.float32)))

    def aggregate(self, server: Prototypes, updates: Updates, context: Context) -> Prototypes:
        return Prototypes(*mixed_centroids(server.centroids, server.centroid_samples, updates.each))


METHOD = FedProto
