"""Cohorts of one size, all subsets alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from raysim.samplers._sampler import Known, Sampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Fixed(Sampler):
    """round(sampling_rate · N) clients, at least one; halves go to even."""

    meaning: ClassVar[str] = "sampling_rate of those present, at least one"
    in_virtual_time: ClassVar[Literal["uniform"]] = "uniform"
    neighbors: ClassVar[Literal["replaced"]] = "replaced"

    def cohort(self, known: Known, generator: np.random.Generator) -> NDArray[np.int64]:
        """A uniform sample without replacement."""
        from raysim.schedule import sample

        return sample(known.count, len(known.clients), generator)


KIND = Fixed
