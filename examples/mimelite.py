"""MimeLite: clients take steps with a momentum of the server's, made of their full gradients and held fixed.

    python examples/mimelite.py --rounds 5                                      # this file alone
    python -m raysim.launch --method examples.mimelite:MimeLite --rounds 5      # the same from the folder above

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

from raysim import ClientTask, Context, Message, Traits, Update, Updates, WholeModel, gradients, local_sgd
from raysim.aggregators.means import plain_mean
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.option_types import Help, ShareBelowOne

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel
    from raysim.workloads.federated_data import ClientData


@dataclass(frozen=True)
class Server:
    """The server's state from round to round, which it also sends."""

    parameters: NDArray[np.float32]
    """x, the shared entries of the global model [d]: parameters, then BatchNorm's statistics."""
    momentum: NDArray[np.float32]
    """s, a mean of full gradients over the p parameters alone [p]; at first 0."""


def extra_bytes(sizes: Sizes) -> ExtraBytes:
    """A full gradient goes up with an update."""
    return ExtraBytes(up=4 * sizes.parameters)


@dataclass(frozen=True)
class MimeLite(WholeModel[Server, None]):
    """MimeLite with SGD and momentum: the momentum is the server's, and stays as it is during local steps.

    Source: Karimireddy et al. 2020, Mime: mimicking centralized stochastic algorithms in federated learning (arXiv
    2008.03606), Algorithm 1 (MimeLite), momentum as the base algorithm. From y = x on, a client of the cohort S makes
    steps y ← y − η ((1 − β) g(y) + β s); the server sets, with s = 0 at first and f_i client i's loss on all its data,

        s ← (1 − β) (1/|S|) Σ_{i∈S} ∇f_i(x) + β s,    x ← (1/|S|) Σ_{i∈S} y_i.

    Departures: BatchNorm's statistics are averaged; full gradients leave them as they are.
    """

    beta: Annotated[ShareBelowOne, Help("momentum β of the server", "Karimireddy et al. 2020")] = 0.9

    defaults: ClassVar[Mapping[str, object]] = {"training.optimizer": "sgd"}
    traits: ClassVar[Traits] = Traits(
        needs_sgd="whose momentum is the server's", takes_stale=True, extra_bytes=extra_bytes
    )

    def init_server(self, model: FlatModel) -> Server:
        """x has the model's initial values, s is 0."""
        return Server(model.take_shared(), np.zeros(model.shared_parameter_count, np.float32))

    def init_client(self, model: FlatModel) -> None:
        """Clients keep nothing."""

    def message(self, server: Server, client: int) -> Message:
        """Every client receives x and s."""
        return Message(server.parameters, {"momentum": server.momentum})

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        """The full gradient at x, then local epochs along (1 − β) g + β s."""
        model.load_shared(message.parameters)
        whole = gradients.full_gradient(model, data.train, task).cpu().numpy()
        momentum = torch.tensor(message.extra["momentum"], device=model.device)

        def mix(model: FlatModel) -> None:
            model.shared_gradient.mul_(1 - self.beta).add_(momentum, alpha=self.beta)

        trained = local_sgd.train_epochs(model, data.train, task, add_gradient=mix)
        return Update(model.change_from(message.parameters), trained.metrics(), {"gradient": whole}), None

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        """Plain means of the clients' models and of their full gradients."""
        whole = plain_mean([update.extra["gradient"] for update in updates.each])
        momentum = np.float32(1 - self.beta) * whole + np.float32(self.beta) * server.momentum
        return Server(server.parameters + plain_mean(updates.deltas), momentum)


if __name__ == "__main__":
    from raysim.launch import main

    sys.exit(main(["--method", "__main__:MimeLite", *sys.argv[1:]]))
