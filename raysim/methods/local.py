"""Every client by itself: what federation must beat for a client to take part."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from raysim.method import NOTHING, Context, Message, Traits, Update, Updates, Vector

if TYPE_CHECKING:
    import torch

    from raysim.flat_model import FlatModel
    from raysim.training.local_sgd import Visit
    from workloads.federated_data import ClientData


@dataclass(frozen=True)
class Local:
    """Local: no communication; each client goes on with its own model, all from the same initial values.

    Source: the "Local" rows of the papers' tables (share nothing). Judged on each client's own test set.
    """

    traits: ClassVar[Traits] = Traits(personal=True)

    def shared_names(self, module: torch.nn.Module) -> Collection[str]:
        return ()

    def init_server(self, model: FlatModel) -> None:
        return None

    def init_client(self, model: FlatModel) -> Vector:
        return model.take_kept()

    def message(self, server: None, client: int) -> Message:
        return Message(NOTHING)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, kept: Vector, visit: Visit
    ) -> tuple[Update, Vector]:
        from raysim.training.local_sgd import train_epochs

        model.load_kept(kept)
        trained = train_epochs(model, data.train, visit)
        return Update(NOTHING, trained.metrics()), model.take_kept()

    def aggregate(self, server: None, updates: Updates, context: Context) -> None:
        return None

    def deploy(self, model: FlatModel, message: Message, kept: Vector) -> None:
        model.load_kept(kept)


METHOD = Local
