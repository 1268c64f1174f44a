"""FedAvgM, FedAdagrad, FedAdam and FedYogi: the server takes the mean change of the clients for a gradient."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Protocol

import numpy as np

from raysim.method import Context, FlatModel, Message, Traits, Updates, Vector
from raysim.methods._halves import StatelessClients
from raysim.workloads.option_types import Help, Positive, ShareBelowOne


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """x, the shared entries of the global model [d]: parameters, then BatchNorm's statistics."""
    momentum: Vector
    """m, the running mean (FedAvgM: sum) of the mean changes, over the p parameters alone [p]."""
    squares: Vector
    """v, the running mean (FedAdagrad: sum) of their squares [p]; [0] where the method needs none."""


class ServerOptimizer(StatelessClients[Server], Protocol):
    """The clients' half is FedAvg's; ``step`` is what the server makes of the mean change Δ, weighted by samples."""

    traits: ClassVar[Traits] = Traits(weighted_mean=True, single_step_gradient=True, plain_training=True)

    @property
    def first_square(self) -> float | None:
        """Initial value of v; None: there is no v."""
        return None

    @abstractmethod
    def step(self, change: Vector, momentum: Vector, squares: Vector) -> tuple[Vector, Vector, Vector]:
        """The step of the parameters, and the next m and v, all [p]."""
        ...

    def init_server(self, model: FlatModel) -> Server:
        count, first = model.shared_parameter_count, self.first_square
        squares = np.zeros(0, np.float32) if first is None else np.full(count, first, np.float32)
        return Server(model.take_shared(), np.zeros(count, np.float32), squares)

    def message(self, server: Server, client: int) -> Message:
        return Message(server.parameters)

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        change = updates.mean()
        trained = slice(context.shared_parameter_count)  # BatchNorm's statistics, behind them, are averaged
        change[trained], momentum, squares = self.step(change[trained], server.momentum, server.squares)
        return Server(server.parameters + change, momentum, squares)


@dataclass(frozen=True)
class FedAvgM(ServerOptimizer):
    """FedAvgM: FedAvg with momentum on the server, m ← β m + Δ, x ← x + η m.

    Source: Hsu et al. 2019, Measuring the effects of non-identical data distribution for federated visual
    classification (arXiv 1909.06335), Section 4.3, with v for m; η is that of Reddi et al. 2021.
    """

    server_momentum: Annotated[ShareBelowOne, Help("momentum β of the server", "code of Reddi et al. 2021")] = 0.9
    server_rate: Annotated[Positive, Help("learning rate η of the server", "1 in Hsu et al. 2019")] = 1.0

    def step(self, change: Vector, momentum: Vector, squares: Vector) -> tuple[Vector, Vector, Vector]:
        momentum = np.float32(self.server_momentum) * momentum + change
        step: Vector = np.float32(self.server_rate) * momentum
        return step, momentum, squares


@dataclass(frozen=True)
class _Adaptive(ServerOptimizer, Protocol):
    """m ← β₁ m + (1 − β₁) Δ, then a v of the method's own, and x ← x + η m / (√v + τ); v is τ² at first.

    Decided here: the mean Δ is weighted by samples, as FedAvg's; BatchNorm's statistics are averaged.
    """

    server_rate: Annotated[
        Positive, Help("learning rate η of the server", "tuned for each task in Reddi et al. 2021")
    ] = 0.01
    beta1: Annotated[ShareBelowOne, Help("decay β₁ of the mean m", "0.9 in Reddi et al. 2021, Section 5")] = 0.9
    tau: Annotated[Positive, Help("adaptivity τ", "10⁻³ in Reddi et al. 2021, Section 5")] = 1e-3

    @property
    def first_square(self) -> float | None:
        return self.tau**2

    @abstractmethod
    def next_squares(self, squares: Vector, new: Vector) -> Vector:
        """The next v, from v and Δ²."""
        ...

    def step(self, change: Vector, momentum: Vector, squares: Vector) -> tuple[Vector, Vector, Vector]:
        momentum = np.float32(self.beta1) * momentum + np.float32(1 - self.beta1) * change
        squares = self.next_squares(squares, np.square(change))
        scale = np.sqrt(squares) + np.float32(self.tau)
        step: Vector = np.divide(np.float32(self.server_rate) * momentum, scale, dtype=np.float32)
        return step, momentum, squares


@dataclass(frozen=True)
class FedAdagrad(_Adaptive):
    """FedAdagrad: every parameter's server step shrinks with the sum of its squared changes, v ← v + Δ².

    Source: Reddi et al. 2021, Adaptive federated optimization (ICLR; arXiv 2003.00295), Algorithm 2. v starts at τ², as
    there (at 0 in the authors' code).
    """

    beta1: Annotated[ShareBelowOne, Help("decay β₁ of the mean m", "no momentum in the authors' code")] = 0.0

    def next_squares(self, squares: Vector, new: Vector) -> Vector:
        return squares + new


@dataclass(frozen=True)
class FedAdam(_Adaptive):
    """FedAdam: Adam on the server, v ← β₂ v + (1 − β₂) Δ², without a correction of the first rounds.

    Source: Reddi et al. 2021, Adaptive federated optimization (ICLR; arXiv 2003.00295), Algorithm 2.
    """

    beta2: Annotated[ShareBelowOne, Help("decay β₂ of the squares v", "0.99 in Reddi et al. 2021, Section 5")] = 0.99

    def next_squares(self, squares: Vector, new: Vector) -> Vector:
        return np.float32(self.beta2) * squares + np.float32(1 - self.beta2) * new


@dataclass(frozen=True)
class FedYogi(_Adaptive):
    """FedYogi: Yogi on the server, v ← v − (1 − β₂) Δ² sign(v − Δ²), which moves by at most (1 − β₂) Δ² a round.

    Source: Reddi et al. 2021, Adaptive federated optimization (ICLR; arXiv 2003.00295), Algorithm 2.
    """

    beta2: Annotated[ShareBelowOne, Help("decay β₂ of the squares v", "0.99 in Reddi et al. 2021, Section 5")] = 0.99

    def next_squares(self, squares: Vector, new: Vector) -> Vector:
        found: Vector = squares - np.float32(1 - self.beta2) * new * np.sign(squares - new)
        return found
