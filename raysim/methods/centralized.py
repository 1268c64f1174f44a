"""Training on the union of all clients' data: the yardstick, not a federated method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from raysim.method import ClientTask, Context, GlobalModel, Message, Traits, Update, Updates, Vector

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel
    from workloads.federated_data import ClientData


@dataclass(frozen=True)
class Centralized(GlobalModel):
    """Centralized: one model trained on all clients' training data put together, for the same local epochs.

    Source: the "Centralized" column of FedRAD, Table 2. The engine pools the data (``Traits.pooled``); evaluation and
    checkpoints happen at the same rounds as in a federated run.
    """

    traits: ClassVar[Traits] = Traits(weighted_mean=True, pooled=True)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import local_update

        return local_update(model, data, message, task), None

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        return server + updates.mean()


METHOD = Centralized
