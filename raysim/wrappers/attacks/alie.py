"""A little is enough: the honest mean less a few deviations of every coordinate.

Source: Baruch et al. 2019, A little is enough (arXiv 1902.06156), Algorithm 3. z is 1.5 as in ByzFL, or the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from raysim.config.wrappers import Attack
from raysim.errors import ConfigError
from raysim.method import Vector
from raysim.wrappers.attacks._attacker import Omniscient, Planned

BLOCK = 65_536
"""Entries whose deviations are computed at a time."""


@dataclass(frozen=True)
class Alie(Omniscient):
    """μ − z σ of the honest updates."""

    strength: float | Literal["paper"] = 1.5
    """z."""

    def forged(self, honest: Sequence[Vector], attackers: int) -> Vector | None:
        """From mean and deviation of every coordinate; None where the paper's z allows no attack."""
        z = self.deviations(Planned(len(honest) + attackers, attackers))
        if z is None:
            return None
        result: Any = np.empty_like(honest[0])
        for start in range(0, result.size, BLOCK):
            block = np.array([vector[start : start + BLOCK] for vector in honest], np.float64)
            result[start : start + BLOCK] = block.mean(axis=0) - z * block.std(axis=0)
        return np.asarray(result)

    def deviations(self, step: Planned) -> float | None:
        """z in a server step; None: there is none."""
        return paper_deviations(*step) if self.strength == "paper" else self.strength

    def check_steps(self, attack: Attack, steps: Sequence[Planned]) -> None:
        """ConfigError where a step takes one update alone, or the paper has no z for one."""
        super().check_steps(attack, steps)
        for step in steps:
            if self.deviations(step) is None:
                raise ConfigError(
                    f"attack.strength: with {step.updates} updates in a server step, {step.attackers} of them "
                    "malicious, the paper's z of alie is not above 0, or nothing bounds it, so that there is no "
                    "attack. Give a number, 1.5 say, or change attack.malicious_share or schedule.sampling_rate."
                )

    def note(self, step: Planned) -> str:
        """A sentence that tells z."""
        note = f"attack.kind alie sends μ − z σ of the honest updates, z = {self.deviations(step):.4g}"
        if self.strength != "paper":
            return note
        return f"{note}: the paper's for {step.updates} updates, {step.attackers} malicious"


def paper_deviations(updates: int, attackers: int) -> float | None:
    """z with Φ(z) = (n − f − s) / (n − f), s = ⌊n/2⌋ + 1 − f (Baruch et al. 2019, Algorithm 3).

    None where z ≤ 0, which is no attack (n = 10 and f = 2, and below one malicious client in ten), and where the
    malicious clients are a majority alone, s ≤ 0, so that any z would do.
    """
    supporters = updates // 2 + 1 - attackers
    honest = updates - attackers
    if supporters <= 0 or 2 * (honest - supporters) <= honest:
        return None
    return NormalDist().inv_cdf((honest - supporters) / honest)


KIND = Alie
