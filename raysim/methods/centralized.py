"""Training on the union of all clients' data: the yardstick, not a federated method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from raysim.method import Context, GlobalModel, Message, Traits, Update, Updates, Vector

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel
    from raysim.training.local_sgd import Visit
    from workloads.federated_data import ClientData


@dataclass(frozen=True)
class Centralized(GlobalModel):
    """Centralized: one model trained on all clients' training data put together, for the same local epochs.

    Source: the "Centralized" column of FedRAD, Table 2. The engine pools the data (``Traits.pooled``); evaluation and
    checkpoints happen at the same rounds as in a federated run.
    """

    traits: ClassVar[Traits] = Traits(weighted_mean=True, pooled=True)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, kept: Any, visit: Visit
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import train_epochs

        model.load_shared(message.parameters)
        trained = train_epochs(model, data.train, visit)
        return Update(model.change_from(message.parameters), trained.metrics()), None

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        return server + updates.mean()


METHOD = Centralized
