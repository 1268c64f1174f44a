"""Normal noise in the place of the update."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raysim import seeds
from raysim.method import ClientTask, Vector
from raysim.wrappers.attacks._attacker import Attacker


@dataclass(frozen=True)
class Gaussian(Attacker):
    """The same in no two clients and rounds."""

    strength: float = 1.0
    """Standard deviation of an entry."""

    def sent(self, delta: Vector, task: ClientTask) -> Vector:
        """Noise, whatever was trained."""
        draws = seeds.numpy_generator(task.seed, "attack noise", task.round, task.client)
        return draws.standard_normal(delta.size, np.float32) * np.float32(self.strength)


KIND = Gaussian
