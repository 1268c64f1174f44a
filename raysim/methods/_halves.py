"""Halves of FedAvg, the server's and the client's, that other methods build on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from raysim.method import (
    NOTHING,
    ClientState,
    ClientTask,
    Context,
    FlatModel,
    Message,
    Method,
    Module,
    ServerState,
    Update,
    Updates,
    Vector,
    WholeModel,
)
from raysim.workloads.federated_data import ClientData

HEAD = "head."
"""How names of the head's parameters begin."""


class Averaged(Method[Vector, ClientState], Protocol[ClientState]):
    """FedAvg's server: every client receives what is shared, which moves by the mean update."""

    def init_server(self, model: FlatModel) -> Vector:
        return model.take_shared()

    def message(self, server: Vector, client: int) -> Message:
        return Message(server)

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        return server + updates.mean()


class AveragedModel(Averaged[ClientState], WholeModel[Vector, ClientState], Protocol[ClientState]):
    """FedAvg's server for the whole model, while clients keep something of their own."""


class PersonalModel(AveragedModel[Vector], Protocol):
    """The client state is the model that its last task made for itself: it is judged by that, and before by θ."""

    def init_client(self, model: FlatModel) -> Vector:
        return NOTHING

    def deploy(self, model: FlatModel, message: Message, state: Vector) -> None:
        model.load_shared(state if state.size else message.parameters)


class PartlyShared(Method[ServerState, Vector], Protocol[ServerState]):
    """FedAvg's client task on the whole model: what ``shared_names`` names is received, the rest is the client state.

    A client is judged by the received part with its own rest, before its first task with the rest's initial values.
    """

    def init_client(self, model: FlatModel) -> Vector:
        return model.take_private()

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.training.local_sgd import train_epochs

        self.deploy(model, message, state)
        trained = train_epochs(model, data.train, task)
        return Update(model.change_from(message.parameters), trained.metrics()), model.take_private()

    def deploy(self, model: FlatModel, message: Message, state: Vector) -> None:
        model.load_shared(message.parameters)
        model.load_private(state)


class AveragedPart(Averaged[Vector], PartlyShared[Vector], Protocol):
    """FedAvg on a part of the model; a method says with ``shared_names`` which, and clients keep the rest."""


class SharedBody(Method[ServerState, ClientState], Protocol[ServerState, ClientState]):
    """A method whose clients share the body; parameters named ``head.*`` are each client's own."""

    def shared_names(self, module: Module) -> Collection[str]:
        from raysim.flat_model import all_names

        return {name for name in all_names(module) if not name.startswith(HEAD)}


def take_head(model: FlatModel) -> Vector:
    """A copy of the head, of a model whose body is shared: the first part of what stays with the client.

    It is all that stays, unless ``training.batchnorm_statistics local`` keeps the body's statistics there too: then
    statistics are the client's own, also those of a head that has any, and the head's parameters are left.
    """
    stays = [entry for entry in model.entries if not entry.shared]
    statistics_stay = any(not entry.name.startswith(HEAD) for entry in stays)
    size = sum(entry.stop - entry.start for entry in stays if entry.parameter or not statistics_stay)
    return model.take_private()[:size]


def load_head(model: FlatModel, head: Vector) -> None:
    """Copy a vector as :func:`take_head` gives it into the head; what else stays with the client is left as it is."""
    private = model.take_private()
    private[: head.size] = head
    model.load_private(private)


class StatelessClients(WholeModel[ServerState, None], Protocol[ServerState]):
    """FedAvg's client half: a client task trains the whole received model, and clients keep nothing."""

    def init_client(self, model: FlatModel) -> None:
        return None

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import local_update

        return local_update(model, data, message, task), None
