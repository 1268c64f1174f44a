"""Ditto: a global model by FedAvg, and for every client a model of its own that is pulled to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from raysim.method import ClientTask, FlatModel, Message, Traits, Update, Vector
from raysim.methods._halves import PersonalModel
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, NonNegative


@dataclass(frozen=True)
class Ditto(PersonalModel):
    """Ditto: beside its part in FedAvg, a client trains a personal model v_i on f_i(v) + (λ/2)‖v − w‖².

    Source: Li et al. 2021, Ditto: fair and robust federated learning through personalization (ICML; arXiv 2012.04221),
    Algorithm 1. From the received global model w, client i takes steps w_i ← w_i − η ∇f_i(w_i) for the server, which
    averages as FedAvg does, and as many for itself:

        v_i ← v_i − η (∇f_i(v_i) + λ (v_i − w)).

    λ = 0 is training alone, a large λ gives the global model.

    Decided here:
    - v_i starts from the w of the client's first task; until then the client is judged by the global model.
    - A client is judged by v_i, on its own test set, as its last task left it: v_i is not moved by later global models.
    - Both trainings have the same number of epochs and learning rate; λ η must stay below 2 for steps that converge.
    - The pull is over parameters; v_i has BatchNorm statistics of its own. ``train_loss`` is that of the global model's
      training, ``steps`` counts both.
    """

    pull: Annotated[NonNegative, Help("weight λ of the pull to the global model", "Li et al. 2021, Eq. 2")] = 1.0

    traits: ClassVar[Traits] = Traits(weighted_mean=True, personal=True, judged_apart=True, same_task=True)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.training.local_sgd import Phase, train_epochs

        kept = model.take_private()  # v_i's statistics, where they stay with the client
        model.load_shared(message.parameters)
        anchor = model.shared_parameters.clone()
        common = train_epochs(model, data.train, task)
        change = model.change_from(message.parameters)

        def add_pull(model: FlatModel) -> None:
            model.shared_gradient.add_(model.shared_parameters - anchor, alpha=self.pull)

        model.load_private(kept)
        self.deploy(model, message, state)
        own = train_epochs(model, data.train, task, add_gradient=add_pull, phase=Phase("shuffle personal"))
        metrics = common.metrics() | {"steps": float(common.steps + own.steps)}
        return Update(change, metrics), model.take_shared()


METHOD = Ditto
