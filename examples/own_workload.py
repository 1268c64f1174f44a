"""A workload of one's own: two classes of points in the plane, one inside the other, held by ten clients.

    python -m raysim.launch --method fedavg --workload examples.own_workload:Rings --model examples.own_model:Narrow

Fields are options (``--noise 0.3 --partition quantity``), and those of ``SplitOptions`` split the points over clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.arrays.labeled_arrays import Part, federation_of
from raysim.workloads.federated_data import Stream
from raysim.workloads.option_types import Help, NonNegative, PositiveInt
from raysim.workloads.splits.split_options import SplitOptions


@dataclass(frozen=True)
class Rings(SplitOptions):
    """Points on two rings, of radius 1 and 2."""

    name: ClassVar[str] = "rings"
    inputs: ClassVar[str] = "array"

    points: Annotated[PositiveInt, Help("training points")] = 1000
    noise: Annotated[NonNegative, Help("standard deviation of a point's distance from its ring")] = 0.2

    def load(self, stream: Stream) -> ArrayFederation:
        """Draw the points; what is random comes from named streams, so that a run can be repeated."""
        train, test = (self._drawn(stream(purpose)) for purpose in ("rings", "rings of the test"))
        return federation_of(self, stream, self.name, train, test, ("inner", "outer"), synthetic=True)

    def _drawn(self, generator: np.random.Generator) -> Part:
        labels = generator.integers(2, size=self.points)
        angles = generator.uniform(0, 2 * np.pi, self.points)
        radii = 1 + labels + self.noise * generator.standard_normal(self.points)
        return Part((radii * np.array([np.cos(angles), np.sin(angles)])).T, labels)
