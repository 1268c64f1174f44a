"""APPLE: every client learns how much of every client's core model goes into its own model."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.means import sample_weights, weighted_sum
from raysim.method import ClientTask, Context, FlatModel, Message, Method, Module, Traits, Update, Updates, Vector
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.federated_data import Batch, ClientData
from raysim.workloads.option_types import Help, NonNegative, Share

Clients = NDArray[np.int64]
Weights = NDArray[np.float64]
SOURCE = "Luo & Wu 2022"


@dataclass(frozen=True)
class Server:
    start: Vector
    """Core model of a client that has none yet: the mean of all cores by start weights; at first the model's initial
    values [d]."""
    cores: dict[int, Vector]
    """θ_j^c of every client that has taken part so far [d]."""
    samples: dict[int, int]
    """m_j of the same clients."""
    proximal: float
    """μ·λ(r) of the next round."""


@dataclass(frozen=True)
class ClientState:
    """The client state: empty before the client's first task, with -1 as its number."""

    client: int
    samples: int
    own: Vector
    """Entries that are not shared, BatchNorm's running statistics among them."""
    clients: Clients
    """Clients whose cores it has met so far, ascending [k]."""
    weights: Weights
    """p_i over them [k]."""


def extra_bytes(sizes: Sizes) -> ExtraBytes:
    """The core, number and samples of each other client that has one."""
    return ExtraBytes(down_per_client=4 * sizes.shared + 16)


@dataclass(frozen=True)
class Apple(Method[Server, ClientState]):
    """APPLE: personal model Σ_j p_ij θ_j^c of all clients' core models, with both the own core and p_i learned.

    Source: Luo & Wu 2022, Adapt to adaptation: learning personalization for cross-silo federated learning (IJCAI),
    Algorithm 1. Every client i has a core model θ_i^c, which the server holds, and a relationship vector p_i over all
    cores, which never leaves the client. With g the gradient of the mini-batch loss at the personal model,

        ∂L/∂θ_i^c = p_ii g,    ∂L/∂p_ij = ⟨g, θ_j^c⟩ + λ(r) μ (p_ij − p0_j),

    the second from the proximal term λ(r) (μ/2) ‖p_i − p0‖² with λ(r) = (1 + cos(π r / L)) / 2 in round r < L (from 0),
    else 0. The other clients' cores stay as they were sent. p0 are shares of the training samples, as in the authors'
    code, or uniform (``start``). p_i takes plain SGD steps, without momentum; the core those of the run's optimizer.

    Decided here:
    - With n cores a core's gradient is p_ii ≈ 1/n of a model's own, so that SGD at the usual rate hardly moves it.
      ``core_rate clients`` (default) multiplies it by n: at p = 1/n the mean of the cores then moves as in FedAvg.
      ``print`` leaves it as printed. AdamW does not see the difference.
    - A client knows the cores of all that have taken part before, and its own. A core it meets for the first time
      enters p with its share p0_j and the older weights shrink by the sum of those shares, so p = p0 stays p = p0. In
      the first round it knows its own core alone, p = (1): local training from common initial values.
    - A client that was not sampled keeps its last core and p. A new one starts from the mean of all cores by p0, and
      is judged by it until its first task.
    - Only parameters that are trained are combined. Frozen ones and floating-point buffers (BatchNorm's statistics)
      stay local: weights may be negative or not sum to one, and so combined variances could be negative. Input layers
      and heads of clients with different tasks stay local too, and are trained with g itself.
    - A core on the server is the one that its client trained last, whole, however stale the update is.
    - A client downloads all n cores (n·d values); the paper's limit on their number is left out.
    """

    mu: Annotated[NonNegative, Help("weight μ of the pull of p toward its start", SOURCE)] = 0.1
    relation_learning_rate: Annotated[NonNegative, Help("learning rate of the relationship vector p", SOURCE)] = 0.001
    proximal_share: Annotated[
        Share, Help("share of all rounds, L, over which the pull decays to zero by a cosine", SOURCE)
    ] = 0.2
    start: Annotated[
        Literal["samples", "uniform"],
        Help("p starts at the clients' shares of training samples (the authors' code), or at 1/n"),
    ] = "samples"
    core_rate: Annotated[
        Literal["clients", "print"],
        Help("gradient of a core: n·p_ii·g, as large as FedAvg's at the start, or p_ii·g as printed"),
    ] = "clients"

    traits: ClassVar[Traits] = Traits(
        personal=True, one_vector=True, uses_rounds=True, takes_stale=True, extra_bytes=extra_bytes
    )

    def shared_names(self, module: Module) -> Collection[str]:
        return [name for name, parameter in module.named_parameters() if parameter.requires_grad]

    def init_server(self, model: FlatModel) -> Server:
        return Server(model.take_shared(), {}, {}, self.mu)

    def init_client(self, model: FlatModel) -> ClientState:
        return ClientState(-1, 0, np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.float64))

    def message(self, server: Server, client: int) -> Message:
        # One entry for each core, and the client's own as `parameters`: the same arrays for all, so each is sent once.
        others = sorted(server.cores.keys() - {client})
        extra: dict[str, Any] = {
            "others": np.array(others, np.int64),
            "samples": np.array([server.samples[other] for other in others], np.int64),
            "proximal": server.proximal,
        }
        extra |= {f"core {other}": server.cores[other] for other in others}
        return Message(server.cores.get(client, server.start), extra)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: ClientState, task: ClientTask
    ) -> tuple[Update, ClientState]:
        from raysim.training.local_sgd import train_epochs

        if len(state.clients):
            model.load_private(state.own)
        combination = Combination(self, model, message, replace(state, client=task.client, samples=data.samples))

        def loss(module: Module, batch: Batch) -> Any:
            combination.enter()
            return task.loss(module, batch)

        trained = train_epochs(model, data.train, task, loss, add_gradient=combination.step)
        weights = combination.weights.cpu().numpy()
        metrics = trained.metrics() | {"own_weight": float(weights[combination.own])}
        after = ClientState(task.client, data.samples, model.take_private(), combination.clients, weights)
        update = Update(model.change_from(message.parameters), metrics)
        combination.enter()  # what the client has trained is its personal model
        return update, after

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        cores, samples = dict(server.cores), dict(server.samples)
        bases = updates.bases or [server.cores.get(client, server.start) for client in updates.clients]
        for row, (client, count) in enumerate(zip(updates.clients, updates.samples.tolist(), strict=True)):
            cores[client] = bases[row] + updates.changes[row]
            samples[client] = count
        order = sorted(cores)
        shares = self.start_weights(np.array([samples[client] for client in order], np.int64))
        start = weighted_sum([cores[client] for client in order], shares.tolist())
        decay = cosine_decay(context.round, self.proximal_share * context.rounds)
        return Server(start, cores, samples, self.mu * decay)

    def deploy(self, model: FlatModel, message: Message, state: ClientState) -> None:
        if len(state.clients) == 0:  # before its first task
            model.load_shared(message.parameters)
            return
        model.load_private(state.own)
        Combination(self, model, message, state).enter()

    def start_weights(self, samples: NDArray[np.int64]) -> Weights:
        """p0 over cores whose clients have these numbers of samples [k]."""
        return sample_weights(samples if self.start == "samples" else np.ones_like(samples))


class Combination:
    """Personal model of one client in one task, in the model's own buffer.

    Between mini-batches the buffer holds the own core, so that the optimizer (momentum, weight decay) acts on it;
    during one it holds Σ_j p_j θ_j^c. Everything is on the flat vectors: two products with the matrix of cores a step.
    """

    def __init__(self, method: Apple, model: FlatModel, message: Message, state: ClientState) -> None:
        import torch

        others: Clients = message.extra["others"]
        self.own = int(np.searchsorted(others, state.client))
        self.clients = np.insert(others, self.own, state.client)
        cores = [message.extra[f"core {other}"] for other in others.tolist()]
        cores.insert(self.own, message.parameters)
        start = method.start_weights(np.insert(message.extra["samples"], self.own, state.samples))
        weights = joined(state.clients, state.weights, self.clients, start)
        model.load_shared(message.parameters)
        self.model = model
        self.cores = torch.from_numpy(np.stack(cores)).to(model.device)
        """θ^c [k, d]; row ``own`` changes."""
        self.weights = torch.from_numpy(weights).to(model.device)
        """p in float64 [k]."""
        self.start = torch.from_numpy(start).to(model.device)
        self.rate = method.relation_learning_rate if len(cores) > 1 else 0.0  # a single core has no others
        self.proximal: float = message.extra["proximal"]
        """μ·λ(r)."""
        self.scale = len(cores) if method.core_rate == "clients" else 1
        """Factor on the own core's gradient."""

    def enter(self) -> None:
        """Buffer: own core → personal model, which stays there for the backward pass."""
        self.cores[self.own].copy_(self.model.shared)
        self.model.shared.copy_(self.weights.float() @ self.cores)

    def step(self, model: FlatModel) -> None:
        """Turn the gradient g at the personal model into that of the own core, after a backward pass.

        It becomes scale·p_ii·g; p makes a step at the same point, and the own core goes back into the buffer.
        """
        gradient = model.shared_gradient
        slope = (self.cores @ gradient).double() + self.proximal * (self.weights - self.start)
        gradient.mul_(self.scale * self.weights[self.own].float())
        self.weights -= self.rate * slope
        model.shared.copy_(self.cores[self.own])


def joined(known: Clients, weights: Weights, clients: Clients, start: Weights) -> Weights:
    """p over ``clients`` [k] from p over those that were ``known`` before, a subset; both ascending.

    New ones get their start weight, and the known ones shrink by the sum of those: the sum of p, if it was 1, stays 1.
    """
    old = np.isin(clients, known)
    result = start.copy()
    result[old] = weights * (1.0 - start[~old].sum())
    return result


def cosine_decay(round: int, length: float) -> float:
    """λ(r) = (1 + cos(π r / L)) / 2 for r < L, else 0; r counts from 0."""
    return (1.0 + math.cos(math.pi * round / length)) / 2.0 if round < length else 0.0


METHOD = Apple
