"""FedDisco: a client counts less the more its classes are distributed differently from those of all clients.

    python examples/feddisco.py --rounds 5                                      # this file alone
    python -m raysim.launch --method examples.feddisco:FedDisco --rounds 5      # the same from the folder above

docs/cookbook.md explains it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim import ClientTask, Context, GlobalModel, Message, Traits, Update, Updates, local_sgd
from raysim.aggregators.means import sample_weights, weighted_sum
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.option_types import Help, NonNegative

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel
    from raysim.workloads.federated_data import ClientData


def extra_bytes(sizes: Sizes) -> ExtraBytes:
    """A number of 8 bytes for each class goes up with an update."""
    return ExtraBytes(up=8 * sizes.classes)


@dataclass(frozen=True)
class FedDisco(GlobalModel):
    """FedDisco: federated averaging with weights by samples n_k less the discrepancy d_k of a client's classes.

    Source: Ye et al. 2023, FedDisco: federated learning with discrepancy-aware collaboration (ICML; arXiv 2305.19229).
    With D_k the shares of the classes in client k's data, T those in the data of all, and n_k = m_k / Σ_j m_j,

        d_k = ‖D_k − T‖₂,    p_k = max(n_k − a d_k + b, 0) / Σ_j max(n_j − a d_j + b, 0),    x ← x + Σ_k p_k Δ_k.

    Departures: T is of the cohort's samples. Where no term is positive the weights are n_k. Class counts reach the
    server as they are: they are public to it.
    """

    a: Annotated[NonNegative, Help("weight a of the discrepancy", "authors' code")] = 0.5
    b: Annotated[NonNegative, Help("constant b of the weights", "authors' code")] = 0.1

    traits: ClassVar[Traits] = Traits(
        classification=True,
        same_task=True,
        one_model=True,
        takes_stale=True,
        extra_bytes=extra_bytes,
        needs_several="which compares the classes of several clients",
    )

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        """FedAvg's client task; the class counts go with the update."""
        update = local_sgd.local_update(model, data, message, task)
        return Update(update.delta, update.metrics, {"class_counts": data.class_counts(task.classes)}), None

    def aggregate(self, server: NDArray[np.float32], updates: Updates, context: Context) -> NDArray[np.float32]:
        """The mean of the changes by the weights p_k, which become a column ``weight`` of the clients table."""
        counts = np.stack([update.extra["class_counts"] for update in updates.each]).astype(np.float64)
        own, everyone = counts / counts.sum(axis=1, keepdims=True), counts.sum(axis=0) / counts.sum()
        shares = sample_weights(updates.samples)
        weights = np.maximum(shares - self.a * np.linalg.norm(own - everyone, axis=1) + self.b, 0)
        weights = weights / weights.sum() if weights.any() else shares
        context.report.clients("weight", weights)
        return server + weighted_sum(updates.deltas, weights.tolist())


if __name__ == "__main__":
    from raysim.launch import main

    sys.exit(main(["--method", "__main__:FedDisco", *sys.argv[1:]]))
