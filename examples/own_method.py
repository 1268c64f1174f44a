"""A method of one's own in one file: FedDyn, with a state on the server and another in every client.

    python examples/own_method.py --rounds 5                                    # this file alone
    python -m raysim.launch --method examples.own_method:FedDyn --rounds 5      # the same from the folder above

Every option of the command line works with it, its own (``--method.alpha``) included.
docs/methods-of-your-own.md explains each function.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from raysim import (
    ClientTask,
    Context,
    Help,
    Message,
    Positive,
    Traits,
    Update,
    Updates,
    WholeModel,
    local_sgd,
    plain_mean,
)

if TYPE_CHECKING:
    from raysim import ClientData
    from raysim.flat_model import FlatModel

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Server:
    """The server's state from round to round."""

    parameters: Vector
    """θ, the shared entries of the global model [d]: parameters, then BatchNorm's statistics."""
    gradient: Vector
    """h, the mean of all clients' states g_k, over the p parameters alone [p]."""


@dataclass(frozen=True)
class FedDyn(WholeModel[Server, Vector]):
    """FedDyn: a penalty that changes with every client task makes local and global optima agree.

    Source: Acar et al. 2021, Federated learning based on dynamic regularization (ICLR; arXiv 2111.04263), Algorithm 1.
    A client k of the cohort S minimizes f_k(w) − ⟨g_k, w⟩ + (α/2)‖w − θ‖² from w = θ on, and keeps
    g_k ← g_k − α (w_k − θ), at first 0. The server sets h ← h − (α/N) Σ_{k∈S} (w_k − θ) and
    θ ← (1/|S|) Σ_{k∈S} w_k − h/α, with N all clients of the run.

    Departure: minimizing is a number of local epochs, as in the authors' code. BatchNorm's statistics, which have no
    gradient, are averaged.
    """

    alpha: Annotated[Positive, Help("weight α of the penalty", "Acar et al. 2021")] = 0.1

    traits: ClassVar[Traits] = Traits(reports=("h_norm",))

    def init_server(self, model: FlatModel) -> Server:
        """θ has the model's initial values, h is 0."""
        return Server(model.take_shared(), np.zeros(model.shared_parameter_count, np.float32))

    def init_client(self, model: FlatModel) -> Vector:
        """The state of a client before its first task: g_k = 0 [p]."""
        return np.zeros(model.shared_parameter_count, np.float32)

    def message(self, server: Server, client: int) -> Message:
        """Every client receives θ, the same array, which is therefore sent once."""
        return Message(server.parameters)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        """Local epochs on the penalized loss; the change of the model, and the client's next state."""
        model.load_shared(message.parameters)
        start = model.shared_parameters.clone()
        gathered = torch.tensor(state, device=model.device)

        def add_penalty(model: FlatModel) -> None:
            model.shared_gradient.add_(self.alpha * (model.shared_parameters - start) - gathered)

        trained = local_sgd.train_epochs(model, data.train, task, add_gradient=add_penalty)
        change = model.change_from(message.parameters)
        return Update(change, trained.metrics()), state - np.float32(self.alpha) * change[: len(state)]

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        """One step of the server; the length of h is a column ``h_norm`` of the rounds table."""
        taking_part = len(updates.clients)
        step = plain_mean(updates.deltas)
        p = context.shared_parameter_count
        gradient = server.gradient - np.float32(self.alpha * taking_part / context.cohort.existing) * step[:p]
        parameters = server.parameters + step
        parameters[:p] -= gradient / np.float32(self.alpha)
        context.report.round("h_norm", float(np.linalg.norm(gradient)))
        return Server(parameters, gradient)


if __name__ == "__main__":
    from raysim.launch import main

    sys.exit(main(["--method", "__main__:FedDyn", *sys.argv[1:]]))
