"""Methods whose server mixes a model for each client from those that the round's clients have trained."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.means import weighted_sum
from raysim.method import ClientState, FlatModel, Message, Module, Updates, Vector, WholeModel

COMPARES = "which mixes each client's model from those of several clients"
"""Why a server step must take updates of several clients."""


@dataclass(frozen=True)
class Server:
    mean: Vector
    """Uniform mean of the models of the last round [d]: for clients that were in no round yet."""
    models: dict[int, Vector]
    """The model of each client [d], from the last round that it took part in."""


class ModelForEach(WholeModel[Server, ClientState], Protocol[ClientState]):
    """The server's half: w_i = Σ_j a_ij θ_j over the round's clients j, where a method makes the weights a.

    Frozen parameters are not shared: sums of equal values are these values but for rounding.
    """

    def shared_names(self, module: Module) -> Collection[str]:
        from raysim.flat_model import all_names

        return all_names(module) - {name for name, each in module.named_parameters() if not each.requires_grad}

    def init_server(self, model: FlatModel) -> Server:
        return Server(model.take_shared(), {})

    def message(self, server: Server, client: int) -> Message:
        return Message(server.models.get(client, server.mean))

    def mixed(self, server: Server, updates: Updates, weights: NDArray[np.float64]) -> Server:
        """The next state of weights a [n, n], a row for each client of the round in client order."""
        bases = updates.bases or [self.message(server, client).parameters for client in updates.clients]
        trained = [base + change for base, change in zip(bases, updates.changes, strict=True)]
        own = {
            client: weighted_sum(trained, row.tolist()) for client, row in zip(updates.clients, weights, strict=True)
        }
        mean = weighted_sum(trained, [1.0 / len(trained)] * len(trained))
        return Server(mean, server.models | own)
