"""Clients as views of a data set: which samples a client has is drawn when it is asked for, and stored nowhere.

A split hands every sample to one client, so it has an entry for each, and no more clients than samples. Views cost
nothing for a client that exists, so that a population of millions fits a data set of any size; samples repeat among
clients instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.splits.partition import Integers, Partition

TRAINING, TEST, VALIDATION = range(3)
PARTS = ("training", "test", "validation")


@dataclass(frozen=True, eq=False)
class Views:
    """A split whose clients are drawn one by one when they are needed, so that any number of them may exist.

    Client k owns ``each`` distinct samples, drawn from (key, k) alone: its class shares ~ Dirichlet(alpha), its samples
    uniformly from their classes. Class c's samples are ``pool[bounds[c]:bounds[c + 1]]``: int64 arrays of length
    samples and classes + 1. Two views with one key but another ``part`` draw by the same shares.
    """

    pool: Integers
    bounds: Integers
    clients: int
    each: int
    alpha: float
    key: int
    part: int

    def size(self, client: int) -> int:
        """Number of a client's samples, the same for all."""
        self._check(client)
        return self.each

    def total(self, clients: int) -> int:
        """Number of samples of the first ``clients`` clients; a sample of several of them counts once for each."""
        return self.each * clients

    def of(self, client: int) -> Integers:
        """The client's indices, ascending."""
        self._check(client)
        sizes = np.diff(self.bounds)
        shares = np.random.default_rng((self.key, client)).dirichlet(np.full(len(sizes), self.alpha))
        generator = np.random.default_rng((self.key, client, 1 + self.part))
        counts = _fitting(generator.multinomial(self.each, shares), sizes)
        chosen = [
            self.pool[start + generator.choice(size, count, replace=False, shuffle=False)]
            for start, size, count in zip(self.bounds, sizes, counts, strict=False)
            if count
        ]
        return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)

    def pooled(self) -> Partition:
        """All samples that clients draw from as one client; of a small population it may hold some that nobody has."""
        return Partition(np.sort(self.pool), np.array([0, len(self.pool)]))

    def _check(self, client: int) -> None:
        if not 0 <= client < self.clients:
            raise IndexError(f"client {client} of {self.clients} views")


def views(
    labels: Integers, clients: int, alpha: float, samples: int, test_share: float, generator: np.random.Generator
) -> tuple[Views, Views]:
    """(train, local test) of clients with ``samples`` samples each, a ``test_share`` (rounded) of them for the test.

    A ``test_share`` of every class, at random, is set aside for local tests, so that what one client is tested on no
    other trains on. A client with two samples or more has at least one on both sides; a single one is for training.

    Work and memory do not depend on ``clients``.

    Args:
        labels: int64 [N] of the data set.

    Raises:
        WorkloadError: a client would need more samples than its side of the data set has.
    """
    pools = [generator.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    whole = Views(*_joined(pools), clients, samples, alpha, int(generator.integers(2**63)), TRAINING)
    return _divided(whole, test_share, TEST, f"lower view_samples ({samples}), or take more images")


def set_aside(train: Views, share: float) -> tuple[Views, Views]:
    """(training, validation) of views of training samples: a ``share`` (rounded) of each client's is for validation.

    A ``share`` of every class is set aside for it, so that nobody trains on what anybody is validated on. A client with
    two samples or more has at least one on both sides; a single one is for training.

    Raises:
        WorkloadError: a client would need more samples than its side of the data set has.
    """
    return _divided(train, share, VALIDATION, f"lower view_samples, or change validation_share ({share:g})")


def _divided(whole: Views, share: float, part: int, advice: str) -> tuple[Views, Views]:
    """The views without a share of each class and of each client's samples, and those of that share, as ``part``."""
    kept, aside = [], []
    for start, stop in pairwise(whole.bounds.tolist()):
        members = whole.pool[start:stop]  # in random order
        count = _part(len(members), share)
        aside.append(members[:count])
        kept.append(members[count:])
    each = _part(whole.each, share)
    return _views(kept, whole, whole.each - each, TRAINING, advice), _views(aside, whole, each, part, advice)


def _part(count: int, share: float) -> int:
    """About a share of the samples, with at least one on both sides if there are two; none of a share of 0."""
    return min(max(int(count * share + 0.5), 1), count - 1) if count and share else 0


def _joined(pools: list[Integers]) -> tuple[Integers, Integers]:
    """The samples of all classes, and where those of each class begin."""
    return np.concatenate(pools), np.cumsum([0, *map(len, pools)]).astype(np.int64)


def _views(pools: list[Integers], whole: Views, each: int, part: int, advice: str) -> Views:
    pool, bounds = _joined(pools)
    if each > len(pool):
        raise WorkloadError(
            f"a view of {each} {PARTS[part]} samples is larger than the {len(pool)} that there are; {advice}"
        )
    return replace(whole, pool=pool, bounds=bounds, each=each, part=part)


def _fitting(counts: Integers, sizes: Integers) -> Integers:
    """The counts cut down to the classes' sizes; what is cut goes to the classes with most samples left."""
    fitting: NDArray[np.int64] = np.minimum(counts, sizes)
    surplus = int(counts.sum() - fitting.sum())
    for label in np.argsort(fitting - sizes, kind="stable") if surplus else ():
        more = min(surplus, int(sizes[label] - fitting[label]))
        fitting[label] += more
        surplus -= more
    return fitting
