"""The contract of a timing mode, and the two families: in rounds, and without them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from raysim.method import Vector


class Moment(NamedTuple):
    """The server's view of a run between two of its steps."""

    time: float
    """Virtual seconds from the start of the run."""
    opened: float | None
    """When the cohort was sampled that is waited for; None before that, and in modes without cohorts."""
    cohort: int
    """Clients of a usual round, or that train at a time."""
    sampled: int
    """Clients of the cohort that is waited for: fewer than in a usual round where fewer were there."""
    arrived: int
    """Updates that have arrived since the last step."""
    flying: int
    """Client tasks under way that start from the present state; those of earlier rounds are not waited for."""
    of_round: int
    """Updates among the arrived ones that start from the present state: the round's own."""
    more: bool
    """Whether a further client task ends at this very time."""


class TimingRule(ABC):
    """One value of ``timing.mode``; its fields are the options of the section ``timing`` that it reads.

    It is imported with the config's sections, so that ``--help`` can tell of it: nothing heavy is imported here.
    """

    when: ClassVar[str]
    """When the server takes a step, for ``--help``."""
    in_rounds: ClassVar[bool]
    """Whether a cohort is sampled at once and the next one after the step; else clients begin as others end."""
    waits_for_all: ClassVar[bool] = False
    """Whether each step has the updates of its whole cohort, but for clients that are lost."""
    draws_ties: ClassVar[bool] = False
    """Whether chance decides which of several updates comes first that arrive at the same virtual second, and not the
    clients' numbers: where only the first ones count, clients with high numbers would never be among them, and where
    each step makes the others older, theirs would always weigh the least."""

    # -- which settings -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def stale(self) -> bool:
        """Whether a step may take updates that start from an earlier version of the server's state.

        If not, all tasks under way end with the step: their clients are late.
        """

    @property
    def single(self) -> str:
        """The setting by which every step takes one update, ``timing.buffer 1``; empty if steps may take several."""
        return ""

    def check(self) -> None:
        """ConfigError for options that contradict one another."""
        return None

    def check_clients(self, at_once: int, present: int, available: int) -> None:
        """ConfigError if a step could never come with these clients.

        Args:
            at_once: how many may train at a time.
            present: how many there are at the start of the run.
            available: how many of them are ever available.
        """
        return None

    def check_seconds(self, shortest: float) -> None:
        """ConfigError if a step could never come where the fastest client's task takes this many virtual seconds."""
        return None

    # -- the order of events ------------------------------------------------------------------------------------------

    def at_once(self, cohort: int) -> int:
        """How many clients train at a time, where a round would sample this many."""
        return cohort

    @abstractmethod
    def begins(self, cohort: int, flying: int) -> int:
        """How many client tasks are to begin now; 0 or less: none. Not asked while a cohort is waited for.

        Args:
            cohort: clients of a usual round, or that train at a time.
            flying: client tasks under way.
        """

    def ends(self, opened: float) -> float:
        """Virtual seconds at which a round that began then is over at the latest; inf: it waits for clients alone."""
        return math.inf

    @abstractmethod
    def due(self, now: Moment) -> bool:
        """Whether the server need not wait any longer; a step then takes what has arrived."""

    @abstractmethod
    def updates(self, cohort: int) -> int:
        """How many updates a step is planned to take, where a round samples this many clients."""

    # -- the weight of an update --------------------------------------------------------------------------------------

    @property
    def equal_weights(self) -> bool:
        """Whether all updates of a step count the same, instead of by their clients' samples."""
        return False

    def factor(self, weight: float) -> float:
        """Factor of a change that is weighted by s(τ) in (0, 1] for its staleness."""
        return weight

    def change(self, delta: Vector, base: Vector, current: Vector) -> Vector:
        """The change [d] of the server's vector that a stale update stands for.

        Args:
            delta: Δ [d], as the client sent it.
            base: θ_τ [d], what the client started from.
            current: θ [d], what it would be sent now.
        """
        return delta


class RoundRule(TimingRule):
    """A mode in rounds: the step comes when no one of the cohort is under way any more, or once it is enough."""

    in_rounds: ClassVar[bool] = True

    @property
    def stale(self) -> bool:
        """Only where late clients' updates are carried over."""
        return False

    def begins(self, cohort: int, flying: int) -> int:
        """A whole cohort."""
        return cohort

    def due(self, now: Moment) -> bool:
        """Also for a round that can bring nothing: it is opened again."""
        return now.opened is not None and (not (now.flying or now.more) or self.enough(now, now.opened))

    def enough(self, now: Moment, opened: float) -> bool:
        """Whether a round ends that began at ``opened``, and some of whose clients are under way."""
        return False

    def updates(self, cohort: int) -> int:
        """One of each client."""
        return cohort


@dataclass(frozen=True)
class CutShort(RoundRule):
    """A mode with late clients, whose updates are dropped or carried over to the next step."""

    draws_ties: ClassVar[bool] = True

    late: str

    @property
    def stale(self) -> bool:
        """Late updates start from the state before."""
        return self.late == "carry"


@dataclass(frozen=True)
class Continuous(TimingRule):
    """A mode without rounds: as soon as a client is back, an idle one begins in its place."""

    in_rounds: ClassVar[bool] = False
    draws_ties: ClassVar[bool] = True

    concurrency: int

    @property
    def stale(self) -> bool:
        """The server goes on while clients train."""
        return True

    def at_once(self, cohort: int) -> int:
        """As many as are asked for, else those of a round."""
        return self.concurrency or cohort

    def begins(self, cohort: int, flying: int) -> int:
        """As many as are missing."""
        return cohort - flying

    def due(self, now: Moment) -> bool:
        """With the updates that a step takes."""
        return now.arrived >= self.updates(now.cohort)
