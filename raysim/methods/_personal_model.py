"""The server half of methods whose server averages one global model while clients keep something of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from raysim.method import NOTHING, ClientState, Context, Message, Updates, Vector, WholeModel

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel


class AveragedModel(WholeModel[Vector, ClientState], Protocol[ClientState]):
    """FedAvg's server: every client receives the global model, which moves by the mean update."""

    def init_server(self, model: FlatModel) -> Vector:
        return model.take_shared()

    def message(self, server: Vector, client: int) -> Message:
        return Message(server)

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        return server + updates.mean()


class PersonalModel(AveragedModel[Vector], Protocol):
    """The client state is the model that its last task made for itself: it is judged by that, and before by θ."""

    def init_client(self, model: FlatModel) -> Vector:
        return NOTHING

    def deploy(self, model: FlatModel, message: Message, state: Vector) -> None:
        model.load_shared(state if state.size else message.parameters)
