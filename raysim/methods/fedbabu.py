"""FedBABU: the body is trained under a head that never changes; fine-tuned models are for judging only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from raysim.method import ClientTask, FlatModel, Message, Traits, Update, Vector
from raysim.methods._halves import HEAD, load_head, take_head
from raysim.methods.fedper import FedPer
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, NonNegativeInt


@dataclass(frozen=True)
class FedBABU(FedPer):
    """FedBABU: FedAvg on the body, under the same random head H_0 everywhere; a head of one's own comes afterwards.

    Source: Oh et al. 2022, FedBABU: toward enhanced representation for federated image classification (ICLR; arXiv
    2106.06042), Algorithm 1. Client i takes steps on its loss f_i by the body alone, from the received B on,

        B_i ← B_i − η ∇_B f_i(B_i, H_0),    B ← Σ_{i∈S} p_i B_i,  p_i = m_i / Σ_{j∈S} m_j,

    and is personalized by fine-tuning from (B, H_0), which has no part in the federated training.

    Decided here:
    - Fine-tuning is of body and head, and belongs to the client task, which alone may look at data: from the received
      (B, H_0) on, at the learning rate of the round. A client is judged by that model, which thus is as old as its
      last task (one round at least); before that, and always with ``tune_epochs`` 0, by the newest B with H_0 (the
      paper's initial accuracy, on each client's own test set). A newer B under a tuned head was worse than under H_0.
    - The head is what is named ``head.*``. BatchNorm's statistics are averaged; the fine-tuned model has its own. With
      ``training.batchnorm_statistics local`` a client keeps those of its body's last training, from which both the next
      training and the fine-tuning start.
    """

    tune_epochs: Annotated[
        NonNegativeInt, Help("epochs of fine-tuning the model for judging; 0: none", "Oh et al. 2022, Section 5")
    ] = 5

    traits: ClassVar[Traits] = replace(FedPer.traits, plain_training=False, judged_apart=True, same_task=True)

    def init_client(self, model: FlatModel) -> Vector:
        return np.concatenate([model.take_private(), np.zeros_like(model.take_shared())])

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.training.local_sgd import Phase, train_epochs

        head, received = take_head(model), model.take_private()  # H_0; and with it statistics, where they stay
        model.load_shared(message.parameters)
        body = train_epochs(model, data.train, task, trains=lambda name: not name.startswith(HEAD))
        update = Update(model.change_from(message.parameters), body.metrics())
        load_head(model, head)
        if self.tune_epochs == 0:
            return update, state
        kept = model.take_private()
        model.load_private(received)
        model.load_shared(message.parameters)
        train_epochs(model, data.train, task, phase=Phase("shuffle tuning", self.tune_epochs))
        tuned = np.concatenate([model.take_private(), model.take_shared()])
        model.load_private(kept)
        return update, tuned

    def deploy(self, model: FlatModel, message: Message, state: Vector) -> None:
        private = model.take_private().size  # behind it the fine-tuned body; zeros: none yet
        if state[private:].any():
            model.load_private(state[:private])
            model.load_shared(state[private:])
        else:
            load_head(model, state[: take_head(model).size])
            model.load_shared(message.parameters)


METHOD = FedBABU
