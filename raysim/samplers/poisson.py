"""Cohorts that every client joins by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from raysim.samplers._sampler import Known, Sampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Poisson(Sampler):
    """Every client with probability q = ``sampling_rate``, independently of the others; a round may have none."""

    meaning: ClassVar[str] = "each by itself with probability sampling_rate, so that a round may have none"
    neighbors: ClassVar[Literal["added or removed"]] = "added or removed"

    def cohort(self, known: Known, generator: np.random.Generator) -> NDArray[np.int64]:
        """Their number from the binomial distribution of (N, q), and then that many, all subsets alike.

        That is the same as to ask every client, and costs what the cohort does, not what all clients do.
        """
        from raysim.schedule import sample

        present = len(known.clients)
        return sample(int(generator.binomial(present, self.sampling_rate)), present, generator)

    @property
    def poisson_rate(self) -> float:
        """q."""
        return self.sampling_rate


KIND = Poisson
