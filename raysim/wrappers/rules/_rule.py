"""The contract of a rule, and the updates of one server step that it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators import robust
from raysim.aggregators.gram import Doubles, gram_matrix, squared_lengths
from raysim.aggregators.means import weighted_sum
from raysim.config.wrappers import Defense
from raysim.method import Vector


@dataclass
class Step:
    """The updates of one server step: n finite vectors, of which f may be anything."""

    vectors: Sequence[Vector]
    """n updates [d]."""
    samples: NDArray[np.int64]
    """m_i [n]."""
    byzantine: int
    """f."""
    parameters: int
    """How many leading entries of d are parameters; the others are statistics."""
    mixing: Doubles | None = None
    """Weights [m, n] of the step before the rule (``defense.before``); None without one."""

    @cached_property
    def gram(self) -> Doubles:
        """Inner products of the updates [n, n], computed where a rule asks for them."""
        return gram_matrix(self.vectors)

    @property
    def mixed_gram(self) -> Doubles:
        """Inner products of the mixed updates [m, m]; without mixing of the updates."""
        return self.gram if self.mixing is None else robust.mixed_gram(self.gram, self.mixing)

    @property
    def lengths_gram(self) -> Doubles:
        """As :attr:`mixed_gram`, of which the diagonal alone is right: it costs less without mixing."""
        return np.diag(squared_lengths(self.vectors)) if self.mixing is None else self.mixed_gram

    def combined(self, coefficients: Doubles) -> Vector:
        """Σ_i c_i v_i, float32 [d], from coefficients [m] of the mixed updates, or [n] of the updates."""
        if self.mixing is not None:
            coefficients = coefficients @ self.mixing
        return weighted_sum(self.vectors, coefficients.tolist())


class Rule(ABC):
    """One way to take the place of the mean; its fields are the options of the section ``defense`` that it reads."""

    @abstractmethod
    def mean(self, step: Step) -> Vector:
        """The rule's mean in the place of ``updates.mean()``, float32 [d]."""

    def check(self, defense: Defense, updates: int) -> None:
        """ConfigError if the rule does not hold for a server step of this many updates; most hold for any."""
        return None
