"""FedALA: before it trains, a client mixes the global model into its own, entry by entry in the last layers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from raysim.method import NOTHING, ClientTask, FlatModel, Message, Traits, Update, Vector
from raysim.methods._halves import AveragedModel
from raysim.rounding import rounded_up
from raysim.workloads.batch_bounds import batch_bounds
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, OpenShare, Positive, PositiveInt


@dataclass(frozen=True)
class Client:
    parameters: Vector
    """The model that its last task ended with [d]; empty before the first."""
    weights: Vector
    """W of the last layers; empty before its second task."""


@dataclass(frozen=True)
class FedALA(AveragedModel[Client]):
    """FedALA: local training starts from θ̂ = θ_i + (θ − θ_i) ⊙ W, with W learned on the client's own data.

    Source: Zhang et al. 2023, FedALA: adaptive local aggregation for personalized federated learning (AAAI; arXiv
    2212.01197), Algorithm 1. W is one below the last p layers, where the global model overwrites; in these it is in
    [0, 1] and follows the loss L on a share s of the client's samples, mini-batch by mini-batch (Eq. 4 and 6):

        W ← min(1, max(0, W − η ∇L(θ̂) ⊙ (θ − θ_i))),    θ̂ ← θ_i + (θ − θ_i) ⊙ W.

    W starts at one. In a client's second task it is learned until the loss hardly changes, later for one pass.

    Decided here:
    - Every pass shuffles the client's samples anew and takes a share s of its mini-batches. The authors' code draws one
      contiguous slice of the samples at random in each task, and goes through it in order in every pass.
    - "Hardly": the last ten mini-batches' losses have a standard deviation below 0.1. The authors' code has the same
      bound on the losses of the last mini-batches of ten passes. It ends after ``most_passes`` passes at the latest;
      the authors' code knows no end.
    - A layer is a module with parameters of its own that travel, in the order of the model.
    - A client is judged by θ̂ from the newest global model with its last W, on its own test set; before its first task
      by the global model, and with W one before its second.
    """

    share: Annotated[OpenShare, Help("share s of the mini-batches that teach W", "Zhang et al. 2023: 80 %")] = 0.8
    layers: Annotated[PositiveInt, Help("number p of last layers with weights W", "Zhang et al. 2023, 4.1")] = 1
    weight_rate: Annotated[Positive, Help("learning rate η of W", "Zhang et al. 2023, Section 4.1")] = 1.0
    most_passes: Annotated[PositiveInt, Help("most passes that learn the first W")] = 20

    traits: ClassVar[Traits] = Traits(weighted_mean=True, personal=True)

    def init_client(self, model: FlatModel) -> Client:
        return Client(NOTHING, NOTHING)

    def deploy(self, model: FlatModel, message: Message, state: Client) -> None:
        model.load_shared(message.parameters)
        if state.weights.size:
            model.load_shared(mixed(message.parameters, state, model.last_layers(self.layers)))

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Client, task: ClientTask
    ) -> tuple[Update, Client]:
        from raysim.training.local_sgd import train_epochs

        trained_before = state.parameters.size > 0
        weights = self._learned(model, data, message.parameters, state, task) if trained_before else NOTHING
        self.deploy(model, message, Client(state.parameters, weights))
        trained = train_epochs(model, data.train, task)
        return Update(model.change_from(message.parameters), trained.metrics()), Client(model.take_shared(), weights)

    def _learned(self, model: FlatModel, data: ClientData, received: Vector, state: Client, task: ClientTask) -> Vector:
        """W after a pass, or after as many as a client's first W needs."""
        from raysim.flat_model import to_numpy
        from raysim.training.gradients import training_mode
        from raysim.training.local_sgd import one_pass

        first, last, settings = state.weights.size == 0, model.last_layers(self.layers), task.training
        weights = np.ones(int(last.sum()), np.float32) if first else state.weights
        distance = (received - state.parameters)[last]
        generator, losses = task.generator("shuffle weights"), list[float]()
        training_mode(model.module, settings)
        batches = rounded_up(self.share, len(batch_bounds(len(data.train), settings.batch_size, settings.last)))
        for _ in range(self.most_passes if first else 1):
            for batch in itertools.islice(one_pass(data.train, settings, generator), batches):
                model.load_shared(mixed(received, Client(state.parameters, weights), last))
                model.gradient.zero_()
                loss = task.loss(model.module, batch)
                loss.backward()
                gradient = to_numpy(model.shared_gradient)[last[: model.shared_parameter_count]]
                weights = np.clip(weights - np.float32(self.weight_rate) * gradient * distance, 0, 1)
                losses.append(loss.item())
            if len(losses) > 10 and float(np.std(losses[-10:])) < 0.1:
                break
        return weights


def mixed(received: Vector, state: Client, last: np.ndarray) -> Vector:
    """θ̂ [d]: the received values, but θ_i + (θ − θ_i) ⊙ W in the last layers."""
    result, own = received.copy(), state.parameters[last]
    result[last] = own + (received[last] - own) * state.weights
    return result


METHOD = FedALA
