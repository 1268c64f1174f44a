"""The contract of a sampler."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Sampler(ABC):
    """One value of ``schedule.sampling``; its fields are the options of the section ``schedule`` that it reads.

    It is imported with the config's sections, so that ``--help`` can tell of it: nothing heavy is imported here.
    """

    meaning: ClassVar[str]
    """The clients of a round, for ``--help``."""
    in_virtual_time: ClassVar[bool] = False
    """Whether the clock, which draws uniformly of the clients that are idle, draws in its manner."""
    neighbors: ClassVar[Literal["replaced", "added or removed", ""]] = ""
    """The client by which two data sets differ that a run's ε tells apart (raysim/wrappers/accounting.py has both
    forms); empty: no ε of its cohorts is known, and central noise is refused."""

    sampling_rate: float

    @abstractmethod
    def cohort(self, number: int, present: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """The clients of a round in ascending order, int64 [n].

        Args:
            number: of the round, counted from 1.
            present: N; clients 0 … N − 1 are there.
            generator: the round's own stream.
        """

    @property
    def poisson_rate(self) -> float | None:
        """Probability with which every client takes part by itself; None where they do not."""
        return None
