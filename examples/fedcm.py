"""FedCM: every local step goes a share of the way that all clients went in the last round.

    python examples/fedcm.py --rounds 5                                  # this file alone
    python -m raysim.launch --method examples.fedcm:FedCM --rounds 5     # the same from the folder above

docs/cookbook.md explains it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from raysim import ClientTask, Context, Message, Traits, Update, Updates, WholeModel, local_sgd
from raysim.aggregators.descent import plain_steps
from raysim.workloads.option_types import Help, PositiveShare

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel
    from raysim.workloads.federated_data import ClientData


@dataclass(frozen=True)
class Server:
    """The server's state from round to round, which it also sends."""

    parameters: NDArray[np.float32]
    """x, the shared entries of the global model [d]: parameters, then BatchNorm's statistics."""
    direction: NDArray[np.float32]
    """Δ, the mean gradient of the last round's local steps over the p parameters alone [p]; at first 0."""


@dataclass(frozen=True)
class FedCM(WholeModel[Server, None]):
    """FedCM: clients descend along α g + (1 − α) Δ, g their own gradient and Δ the mean one of the last round.

    Source: Xu et al. 2021, FedCM: federated learning with client-level momentum (arXiv 2106.10874). From y = x on, a
    client of the cohort S makes K steps y ← y − η (α g(y) + (1 − α) Δ); the server sets, with Δ = 0 at first,

        Δ ← −(1 / (η K |S|)) Σ_{i∈S} (y_i − x),    x ← x + (1/|S|) Σ_{i∈S} (y_i − x).

    Departures: the server's rate is that at which x becomes the mean of the clients' models. K differs between clients,
    as local work is a number of epochs; Δ is divided by its mean over the cohort (of plain steps, with momentum).
    BatchNorm's statistics are averaged.
    """

    alpha: Annotated[PositiveShare, Help("share α of a client's own gradient in its steps", "Xu et al. 2021")] = 0.1

    defaults: ClassVar[Mapping[str, object]] = {"training.optimizer": "sgd"}
    traits: ClassVar[Traits] = Traits(
        weighted_mean=True, plain_mean=True, needs_sgd="which reads the mean gradient off the changes by sgd"
    )

    def init_server(self, model: FlatModel) -> Server:
        """x has the model's initial values, Δ is 0."""
        return Server(model.take_shared(), np.zeros(model.shared_parameter_count, np.float32))

    def init_client(self, model: FlatModel) -> None:
        """Clients keep nothing."""

    def message(self, server: Server, client: int) -> Message:
        """Every client receives x and Δ."""
        return Message(server.parameters, {"direction": server.direction})

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        """Local epochs along α g + (1 − α) Δ."""
        model.load_shared(message.parameters)
        direction = torch.tensor(message.extra["direction"], device=model.device)

        def mix(model: FlatModel) -> None:
            model.shared_gradient.mul_(self.alpha).add_(direction, alpha=1 - self.alpha)

        trained = local_sgd.train_epochs(model, data.train, task, add_gradient=mix)
        return Update(model.change_from(message.parameters), trained.metrics()), None

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        """x becomes the plain mean of the clients' models; Δ is read off its change."""
        change, p = updates.mean(), context.shared_parameter_count
        steps = plain_steps(updates.metric("steps").astype(np.int64), context.training.momentum).mean()
        return Server(server.parameters + change, change[:p] / np.float32(-context.learning_rate * steps))


if __name__ == "__main__":
    from raysim.launch import main

    sys.exit(main(["--method", "__main__:FedCM", *sys.argv[1:]]))
