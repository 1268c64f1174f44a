"""How many clients a round samples, of how many, and how many training samples they hold: the same for both halves.

A method whose mathematics names the number of clients (SCAFFOLD, FedDyn) or a client's share of all data takes them
from here. They are six numbers in every message, whatever the size of the population.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from raysim.workloads.federated_data import Federation


@dataclass(frozen=True)
class Cohort:
    """Numbers of clients and training samples of one round.

    A client that failed and was skipped (``engine.on_client_error skip``) still counts here: ``updates.clients`` says
    whose updates arrived. With pooled data there is one client, which holds all samples.
    """

    size: int
    """|S|, the clients that this round sampled; a Poisson cohort may have none."""
    samples: int
    """Σ m_i over the cohort."""
    present: int
    """N, the clients that have joined by this round, of which the cohort was drawn."""
    present_samples: int
    """m = Σ m_i over the clients that have joined."""
    existing: int
    """All clients that ever take part; more than ``present`` while late joiners (``schedule.joins``) are to come."""

    poisson_rate: float | None = None
    """q where every present client took part by itself with probability q (``schedule.sampling poisson``)."""
    steps_take: int | None = None
    """In virtual time, how many updates a server step is planned to take; None without it."""
    left_out: int = 0
    """Clients that would take part and are left out (``schedule.without``); no other number here counts them."""

    @property
    def ids(self) -> int:
        """How many clients take part or are left out: their numbers are 0 to this number − 1."""
        return self.existing + self.left_out

    @property
    def planned(self) -> float:
        """|S| where it is fixed; of Poisson cohorts the mean q · N, in virtual time the updates of a planned step.

        It says nothing about who took part, nor about who dropped out or was late.
        """
        if self.steps_take is not None:
            return self.steps_take
        return self.size if self.poisson_rate is None else self.poisson_rate * self.present

    @property
    def rate(self) -> float:
        """|S| / N, the share of the present clients that take part; ``schedule.sampling_rate`` up to rounding."""
        return self.size / self.present

    @overload
    def share(self, samples: int) -> float: ...
    @overload
    def share(self, samples: NDArray[np.int64]) -> NDArray[np.float64]: ...
    def share(self, samples: int | NDArray[np.int64]) -> float | NDArray[np.float64]:
        """A client's share of the data of all present clients, p_i = m_i / m.

        Args:
            samples: ``data.samples`` in ``train``, ``updates.samples`` in ``aggregate``. The shares of a cohort add up
                to 1 only where every present client takes part.
        """
        return samples / self.present_samples

    @overload
    def share_of_cohort(self, samples: int) -> float: ...
    @overload
    def share_of_cohort(self, samples: NDArray[np.int64]) -> NDArray[np.float64]: ...
    def share_of_cohort(self, samples: int | NDArray[np.int64]) -> float | NDArray[np.float64]:
        """A client's share of the data of this round's cohort, m_i over its samples."""
        return samples / self.samples


UNKNOWN = Cohort(0, 0, 0, 0, 0)
"""Cohort of a client task or context made by hand without one; its rate and shares raise ZeroDivisionError."""


def cohort_of(
    federation: Federation,
    clients: Sequence[int],
    present: int,
    trainable: int,
    poisson_rate: float | None = None,
    without: Collection[int] = (),
) -> Cohort:
    """The numbers of a round in which ``clients`` take part, sampled from the first ``present`` of all clients.

    Args:
        federation: their data.
        clients: the cohort.
        present: number of clients that have joined.
        trainable: number of clients that ever take part.
        poisson_rate: the probability of each, where their number is random.
        without: clients below ``trainable`` that are left out.
    """
    samples, absent = sum(map(federation.samples, clients)), [client for client in without if client < present]
    return Cohort(
        len(clients),
        samples,
        present - len(absent),
        federation.total_samples(present) - sum(map(federation.samples, absent)),
        trainable - len(without),
        poisson_rate,
        left_out=len(without),
    )


def samples_of(federation: Federation) -> Callable[[Sequence[int]], NDArray[np.int64]]:
    """The numbers of training samples of some clients [n], for a sampler; those of all are asked for once."""
    import numpy as np

    @cache
    def of_all() -> NDArray[np.int64]:
        return np.fromiter(map(federation.samples, range(federation.clients)), np.int64, federation.clients)

    def samples(clients: Sequence[int]) -> NDArray[np.int64]:
        return of_all()[clients.start : clients.stop] if isinstance(clients, range) else of_all()[list(clients)]

    return samples
