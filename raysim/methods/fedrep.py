"""FedRep: one body for all, trained through heads that every client fits first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from raysim.method import ClientTask, FlatModel, Message, Traits, Update, Vector
from raysim.methods._halves import HEAD
from raysim.methods.fedper import FedPer
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, PositiveInt


@dataclass(frozen=True)
class FedRep(FedPer):
    """FedRep: a client first trains its own head with the body frozen, then the body with the head frozen.

    Source: Collins et al. 2021, Exploiting shared representations for personalized federated learning (ICML; arXiv
    2102.07078), Algorithm 1. Client i takes steps on f_i, first by its head from the received body B, then by the body:

        H_i ← H_i − η ∇_H f_i(B, H_i), ``head_epochs`` epochs;    B_i ← B_i − η ∇_B f_i(B_i, H_i), ``local_epochs``.

    The server takes the mean of the bodies. What is shared and kept, and what a client is judged by, is as in FedPer.

    Decided here:
    - The mean is weighted by samples, as in the authors' code; the print, with equal clients, has the plain mean.
    - Both trainings have the learning rate of the round. BatchNorm's statistics also move while the head trains.
    """

    head_epochs: Annotated[
        PositiveInt, Help("epochs on the head alone, body frozen", "10 in all scripts of the authors' code")
    ] = 10

    traits: ClassVar[Traits] = replace(FedPer.traits, plain_training=False)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.training.local_sgd import Phase, train_epochs

        self.deploy(model, message, state)
        phase = Phase("shuffle head", self.head_epochs)
        head = train_epochs(model, data.train, task, trains=lambda name: name.startswith(HEAD), phase=phase)
        body = train_epochs(model, data.train, task, trains=lambda name: not name.startswith(HEAD))
        metrics = body.metrics() | {"steps": float(head.steps + body.steps)}
        return Update(model.change_from(message.parameters), metrics), model.take_private()


METHOD = FedRep
