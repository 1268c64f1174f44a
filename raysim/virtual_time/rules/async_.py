"""FedAsync: a server step at every update, which mixes the client's model into the server's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from raysim.virtual_time.rules._rule import Continuous

if TYPE_CHECKING:
    from raysim.method import Vector


@dataclass(frozen=True)
class Async(Continuous):
    """θ ← (1 − α s(τ)) θ + α s(τ) (θ_τ + Δ), with α = ``mixing`` and θ_τ what the client started from.

    As a change of the current θ that is α s(τ) (θ_τ + Δ − θ).

    Source: Xie et al. 2019, Asynchronous Federated Optimization, Algorithm 1.
    """

    when: ClassVar[str] = "at every update (FedAsync)"

    mixing: float

    @property
    def single(self) -> str:
        """Always."""
        return "timing.mode async"

    def updates(self, cohort: int) -> int:
        """One, of any cohort."""
        return 1

    def factor(self, weight: float) -> float:
        """α s(τ)."""
        return self.mixing * weight

    def change(self, delta: Vector, base: Vector, current: Vector) -> Vector:
        """From the server's model to the client's."""
        return (base + delta) - current


KIND = Async
