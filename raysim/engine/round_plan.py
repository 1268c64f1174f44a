"""What one round is to be, known before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raysim.cohort import Cohort


@dataclass(frozen=True)
class RoundPlan:
    """Who takes part in a round, what these clients do, and what is done with the result."""

    number: int
    """Counted from 1."""
    local_epochs: int
    learning_rate: float
    samples: Mapping[int, int]
    """Training samples of each participant, by client in ascending order."""
    cohort: Cohort
    evaluates: bool
    decomposes: bool

    @property
    def clients(self) -> tuple[int, ...]:
        """The participants, ascending."""
        return tuple(self.samples)


@dataclass(frozen=True)
class ClientFacts:
    """What is the same for the clients of all rounds of a run."""

    keep: bool
    """Whether they keep a state."""
    state_bytes: int
    """About how large one is."""
    merge: bool
    """Whether those that take a single step may be merged (raysim/engine/fedsgd.py)."""
