"""The client half of methods that share a part of the model, while the rest stays with its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from raysim.method import ClientTask, Message, Method, ServerState, Update, Vector

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel
    from workloads.federated_data import ClientData


class PartlyShared(Method[ServerState, Vector], Protocol[ServerState]):
    """FedAvg's client task on the whole model: what ``shared_names`` names is received, the rest is the client state.

    A client is judged by the received part with its own rest, before its first task with the rest's initial values.
    """

    def init_client(self, model: FlatModel) -> Vector:
        return model.take_kept()

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.training.local_sgd import train_epochs

        self.deploy(model, message, state)
        trained = train_epochs(model, data.train, task)
        return Update(model.change_from(message.parameters), trained.metrics()), model.take_kept()

    def deploy(self, model: FlatModel, message: Message, state: Vector) -> None:
        model.load_shared(message.parameters)
        model.load_kept(state)
