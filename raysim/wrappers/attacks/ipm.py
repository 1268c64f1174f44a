"""The honest mean with the opposite sign (Xie et al. 2020, Fall of empires, arXiv 1903.03936)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raysim.aggregators.means import weighted_sum
from raysim.method import Vector
from raysim.wrappers.attacks._attacker import Omniscient


@dataclass(frozen=True)
class Ipm(Omniscient):
    """Inner product manipulation."""

    strength: float = 0.5
    """ε."""

    def forged(self, honest: Sequence[Vector], attackers: int) -> Vector | None:
        """−ε μ."""
        return weighted_sum(honest, [-self.strength / len(honest)] * len(honest))


KIND = Ipm
