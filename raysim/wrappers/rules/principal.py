"""FedLD's step of all clients along the leading axes of all updates.

Source: Zeng et al. 2024, Eq. 4-7 as printed (aggregators/principal_gradients.py): no robust rule, as a client keeps the
length of its update.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raysim.aggregators.gram import combine, piece_grams
from raysim.aggregators.means import sample_weights
from raysim.aggregators.principal_gradients import principal_coefficients
from raysim.method import Vector
from raysim.wrappers.rules._rule import Rule, Step


@dataclass(frozen=True)
class Principal(Rule):
    """Clients have equal weights, statistics of BatchNorm are weighted by samples; it goes with no step before it."""

    axes: float
    """Share of the n axes that are kept."""

    def mean(self, step: Step) -> Vector:
        """The turned parameters, and the mean of statistics."""
        count, places = len(step.vectors), [0, step.parameters]
        (gram,) = piece_grams(step.vectors, places)
        coefficients = principal_coefficients(gram, self.axes, "keep", np.full(count, 1 / count)).tolist()
        weights = sample_weights(step.samples).tolist()
        return combine(step.vectors, [*places, step.vectors[0].size], [coefficients, weights])


KIND = Principal
