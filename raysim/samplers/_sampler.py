"""The contract of a sampler."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Losses(NamedTuple):
    """Losses of clients on their own training data, in the order in which the clients were asked."""

    mean: NDArray[np.float64]
    """Mean loss of a sample [n]; nan where a client has none."""
    mean_square: NDArray[np.float64]
    """Mean of the squared losses of single samples [n]."""


@dataclass(frozen=True)
class Known:
    """All that a sampler is told before it chooses the clients of a round."""

    number: int
    """The round, counted from 1."""
    clients: Sequence[int]
    """The clients to choose from, ascending: those that have joined, in virtual time those idle and there."""
    count: int
    """K, the clients that a round of fixed size takes."""
    samples: Callable[[Sequence[int]], NDArray[np.int64]]
    """Training samples of some clients [n]."""
    ask: Callable[[Sequence[int]], Losses] | None = None
    """Sends these clients the round's model, for their losses with it; every one costs a message and an answer. None
    unless the sampler is :attr:`Sampler.adaptive`."""
    seconds: Callable[[Sequence[int]], NDArray[np.float64]] | None = None
    """Virtual seconds of some clients' tasks [n]; None: the run has no virtual time."""
    memory: Any = None
    """The last value of :meth:`Sampler.learn`, or :meth:`Sampler.first_memory`."""


@dataclass(frozen=True)
class Sampler(ABC):
    """One value of ``schedule.sampling``; its fields are the options of the section ``schedule`` that it reads.

    It is imported with the config's sections, so that ``--help`` can tell of it: nothing heavy is imported here.
    """

    meaning: ClassVar[str]
    """The clients of a round, for ``--help``."""
    in_virtual_time: ClassVar[Literal["", "uniform", "as it is"]] = ""
    """Whether cohorts can be drawn of the clients that are idle: by the clock itself, uniformly; by :meth:`cohort`; or,
    empty, not at all."""
    adaptive: ClassVar[bool] = False
    """Whether it looks at losses, so that the next round's clients are known once this round is over."""
    reports: ClassVar[bool] = False
    """Whether clients report, with their updates, their losses with the model that they were sent (:meth:`learn`)."""
    neighbors: ClassVar[Literal["replaced", "added or removed", ""]] = ""
    """The client by which two data sets differ that a run's ε tells apart (raysim/wrappers/accounting.py has both
    forms); empty: no ε of its cohorts is known, and central noise above 0 is refused."""
    amplifies: ClassVar[bool] = True
    """Whether ε counts on the sampling; if not, all clients count as taking part in every round."""

    sampling_rate: float

    @abstractmethod
    def cohort(self, known: Known, generator: np.random.Generator) -> NDArray[np.int64]:
        """The clients of a round in ascending order, int64 [n].

        Args:
            known: what there is to choose from.
            generator: the round's own stream.
        """

    def first_memory(self) -> Any:
        """Memory before the first round, a tree of plain values and arrays; an axis of size 0 may grow."""
        return None

    def learn(self, known: Known, clients: Sequence[int], losses: Losses) -> Any:
        """The memory after a round.

        Args:
            known: as the round's cohort was chosen by.
            clients: those whose updates the round took, ascending.
            losses: theirs with the model that they were sent.
        """
        return known.memory

    @property
    def poisson_rate(self) -> float | None:
        """Probability with which every client takes part by itself; None where they do not."""
        return None
