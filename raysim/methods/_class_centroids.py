"""Mean features of every class: what a client sends of them, their means over clients, and the distance to these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.method import ClientTask, FlatModel, Loss, Message, Tensor, Update, Vector
from raysim.traits import Sizes
from raysim.workloads.federated_data import Batch, Samples
from raysim.workloads.objective import CLASSIFICATION, Objective


def centroid_bytes(sizes: Sizes) -> int:
    """Centroids or sums of features [classes, features] and numbers of samples [classes]."""
    return (4 * sizes.features + 8) * sizes.classes


def feature_sums(
    model: FlatModel, samples: Samples, task: ClientTask
) -> tuple[NDArray[np.float64], NDArray[np.int64], float]:
    """Σ h by class [classes, features], samples by class [classes] and Σ ‖h‖², over one pass in evaluation mode."""
    import torch
    from torch.nn.functional import one_hot

    body: Any = model.module.eval().body
    sums = torch.zeros((), dtype=torch.float64, device=model.device)
    counts = torch.zeros(task.classes, dtype=torch.int64, device=model.device)
    squares = torch.zeros((), dtype=torch.float64, device=model.device)
    with torch.no_grad():
        for batch in samples.batches(task.evaluation_batch):
            features = body(batch.x).double()
            member = one_hot(batch.y, task.classes)
            sums = sums + member.T.double() @ features
            counts += member.sum(dim=0)
            squares += features.square().sum()
    return sums.cpu().numpy(), counts.cpu().numpy(), float(squares)


def own_centroids(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> dict[str, Any]:
    """A client's part of the centroids: sums of features [classes, features] and their numbers [classes]."""
    return {"class_sums": sums.astype(np.float32), "class_samples": counts}


def mixed_centroids(
    last: Vector, last_samples: NDArray[np.int64], updates: Sequence[Update]
) -> tuple[Vector, NDArray[np.int64]]:
    """Mean features of each class over all clients of a round [classes, features], and their numbers [classes].

    If no client of the round has samples of a class, its centroid and number stay as they were; both are zero until
    some client has had samples of it.
    """
    counts = np.stack([update.extra["class_samples"] for update in updates]).sum(axis=0)
    sums = np.stack([update.extra["class_sums"] for update in updates]).sum(axis=0, dtype=np.float64)
    first = last.size == 0
    centroids = np.zeros(sums.shape, np.float32) if first else last.copy()
    known = np.zeros_like(counts) if first else last_samples.copy()
    present = counts > 0
    centroids[present] = sums[present] / counts[present, None]
    known[present] = counts[present]
    return centroids, known


def centroid_loss(
    model: FlatModel,
    message: Message,
    weight: float,
    objective: Objective = CLASSIFICATION,
    own: NDArray[np.float64] | None = None,
) -> Loss:
    """Cross-entropy + λ · mean over the batch of ‖h - c_y‖².

    Args:
        own: the client's own mean features [classes, features], for classes without a centroid; None: a sample of such
            a class has no distance.
    """
    import torch

    from raysim.flat_model import as_tensor

    if weight == 0.0 or message.extra["centroids"].size == 0:
        return lambda module, batch: objective.mean_loss(module(batch.x), batch.y)
    centroids = as_tensor(message.extra["centroids"]).to(model.device)
    known = torch.tensor(message.extra["centroid_samples"] > 0, device=model.device)
    if own is not None:
        centroids = torch.where(known[:, None], centroids, torch.tensor(own).to(centroids))
        known = torch.ones_like(known)

    def loss(module: Any, batch: Batch) -> Tensor:
        features = module.body(batch.x)
        distance = (features - centroids[batch.y]).square().sum(dim=1)
        term = torch.where(known[batch.y], distance, torch.zeros_like(distance)).mean()
        return objective.mean_loss(module.head(features), batch.y) + weight * term

    return loss
