"""SCAFFOLD: control variates take the drift of the clients out of their local steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from raysim.aggregators.descent import plain_steps
from raysim.aggregators.means import mean_of_parameters, weighted_sum
from raysim.method import ClientTask, Context, FlatModel, Message, Traits, Update, Updates, Vector, WholeModel
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, Positive


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """x, the shared entries of the global model [d]: parameters, then BatchNorm's statistics."""
    control: Vector
    """c, the mean of all clients' c_i, over the p parameters alone [p]."""


def extra_bytes(sizes: Sizes) -> ExtraBytes:
    """A client's step of its control variate; the server's is in every message."""
    return ExtraBytes(up=4 * sizes.parameters)


@dataclass(frozen=True)
class Scaffold(WholeModel[Server, Vector]):
    """SCAFFOLD: every local step is corrected by c − c_i, the mean gradient of all clients minus the client's own.

    Source: Karimireddy et al. 2020, SCAFFOLD: stochastic controlled averaging for federated learning (ICML; arXiv
    1910.06378), Algorithm 1 with option II. Client i of the cohort S, of N clients, makes K_i steps from y = x on and
    renews its control variate c_i, at first 0:

        y ← y − η_l (g_i(y) − c_i + c),    c_i⁺ = c_i − c + (x − y) / (K_i η_l).

    The server, whose c is 0 at first, takes plain means over the cohort, not weighted by samples:

        x ← x + (η_g / |S|) Σ_{i∈S} (y_i − x),    c ← c + (1/N) Σ_{i∈S} (c_i⁺ − c_i).

    Decided here:
    - K_i differs between clients: the local work is a number of epochs.
    - N counts all clients of the run, late joiners (``schedule.joins``) from the start. c thus is the mean of all c_i
      at any time; c_i of a client that is yet to come, like one that was never sampled, is 0.
    - A client that failed and was skipped keeps its c_i and is in neither sum; |S| is the number of updates.
    - With momentum the changes y − x are sums of gradients with unequal weights; their sum takes the place of K_i, and
      c_i⁺ is a weighted mean of the g_i (aggregators/descent.py). The gradient of a weight decay is part of g_i.
    - BatchNorm's statistics, which have no gradient, are averaged, whatever η_g is.
    - Stale updates: changes y_i − x are weighted, c_i⁺ − c_i are not, so that c stays the mean of all c_i.
    """

    defaults: ClassVar[Mapping[str, object]] = {"training.optimizer": "sgd"}  # graph workloads have adamw otherwise

    server_rate: Annotated[
        Positive, Help("learning rate η_g of the server", "Karimireddy et al. 2020, Algorithm 1; 1 in Section 7")
    ] = 1.0

    traits: ClassVar[Traits] = Traits(
        needs_sgd="which reads a client's mean gradient off its change by sgd",
        reports=("control_norm",),
        takes_stale=True,
        extra_bytes=extra_bytes,
    )

    def init_server(self, model: FlatModel) -> Server:
        return Server(model.take_shared(), self.init_client(model))

    def init_client(self, model: FlatModel) -> Vector:
        return np.zeros(model.shared_parameter_count, np.float32)

    def message(self, server: Server, client: int) -> Message:
        return Message(server.parameters, {"control": server.control})

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        import torch

        from raysim.training.local_sgd import train_epochs

        model.load_shared(message.parameters)
        control: Vector = message.extra["control"]
        correction = torch.tensor(control - state, device=model.device)

        def correct(model: FlatModel) -> None:
            model.shared_gradient.add_(correction)

        trained = train_epochs(model, data.train, task, add_gradient=correct)
        change = model.change_from(message.parameters)
        length = plain_steps(trained.steps, task.training.momentum) * task.learning_rate
        step = -control - change[: len(state)] / np.float32(length)
        return Update(change, trained.metrics(), {"control": step}), state + step

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        arrived = len(updates.clients)
        change = mean_of_parameters(updates.deltas, context.shared_parameter_count, updates.samples)
        change[: context.shared_parameter_count] *= np.float32(self.server_rate)
        steps = [update.extra["control"] for update in updates.each]
        control = server.control + weighted_sum(steps, [1 / context.cohort.existing] * arrived)
        context.report.round("control_norm", float(np.linalg.norm(control)))
        return Server(server.parameters + change, control)


METHOD = Scaffold
