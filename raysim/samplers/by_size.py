"""Cohorts in which clients with more data are more often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from raysim.samplers._sampler import Known, Sampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class BySize(Sampler):
    """K = round(sampling_rate · N) clients, drawn one after another in proportion to their training samples m_i.

    Li, Huang, Yang, Wang and Zhang 2020 (On the convergence of FedAvg on non-IID data, section 3.3, scheme I) draw with
    replacement by p_i = m_i / m and average with equal weights, so that the mean is unbiased. Departures: none is drawn
    twice, and updates keep the weights that the method gives them, by samples in most: large clients then count more
    than their share. Sizes count as public, and ε does not count on the sampling.
    """

    meaning: ClassVar[str] = "sampling_rate of those present, drawn in proportion to their training samples"
    in_virtual_time: ClassVar[Literal["as it is"]] = "as it is"
    neighbors: ClassVar[Literal["replaced"]] = "replaced"
    amplifies: ClassVar[bool] = False

    def cohort(self, known: Known, generator: np.random.Generator) -> NDArray[np.int64]:
        """A sample without replacement with weights m_i."""
        import numpy as np

        from raysim.schedule import weighted_sample

        places = weighted_sample(known.count, known.samples(known.clients).astype(np.float64), generator)
        return np.array([known.clients[place] for place in places], np.int64)


KIND = BySize
