"""The update times −strength."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raysim.method import ClientTask, Vector
from raysim.wrappers.attacks._attacker import Attacker


@dataclass(frozen=True)
class SignFlip(Attacker):
    """It pulls the model back."""

    strength: float = 1.0

    def sent(self, delta: Vector, task: ClientTask) -> Vector:
        """The change times −strength."""
        return np.asarray(delta * np.float32(-self.strength))


KIND = SignFlip
