"""Splits of a data set over clients.

Every split is disjoint, complete, bounded in work and a function of its generator; all but ``sites`` give every client
at least ``min_samples`` samples.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Partition:
    """Client i owns ``indices[offsets[i]:offsets[i + 1]]``: int64 arrays of length samples and clients + 1."""

    indices: Integers
    offsets: Integers

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Integers:
        """Number of samples of each client, [clients]."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Integers:
        """The client of each entry of ``indices``, [samples]."""
        return np.repeat(np.arange(self.clients), self.sizes)

    def size(self, client: int) -> int:
        """Number of a client's samples."""
        return len(self.of(client))

    def total(self, clients: int) -> int:
        """Number of samples of the first ``clients`` clients."""
        return int(self.offsets[clients])

    def of(self, client: int) -> Integers:
        """The client's indices, ascending; a view."""
        if not 0 <= client < self.clients:
            raise IndexError(f"client {client} of a partition with {self.clients} clients")
        return self.indices[self.offsets[client] : self.offsets[client + 1]]

    def pooled(self) -> Partition:
        """All samples as one client."""
        return Partition(self.indices, self.offsets[[0, -1]])


@dataclass(frozen=True, eq=False)
class Common:
    """The same samples for every client, a common test set say: ``indices`` int64, stored once."""

    indices: Integers
    clients: int

    def size(self, client: int) -> int:
        """Number of a client's samples: all of them."""
        return len(self.of(client))

    def of(self, client: int) -> Integers:
        """The samples of a client, which are the same for all."""
        if not 0 <= client < self.clients:
            raise IndexError(f"client {client} of {self.clients}")
        return self.indices

    def pooled(self) -> Partition:
        """Each sample once, of one client."""
        return Partition(self.indices, np.array([0, len(self.indices)]))


def from_owners(owners: Integers, clients: int, indices: Integers | None = None) -> Partition:
    """The partition in which client ``owners[j]`` has sample ``indices[j]`` (j itself by default); -1 owns nothing."""
    taken = np.flatnonzero(owners >= 0)
    owners, indices = owners[taken], taken if indices is None else indices[taken]
    order = np.lexsort((indices, owners))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=clients))])
    return Partition(indices[order].astype(np.int64), offsets.astype(np.int64))


def iid(samples: int, clients: int, min_samples: int, generator: np.random.Generator) -> Partition:
    """Random parts whose sizes differ by at most one."""
    check_enough(samples, clients, min_samples)
    owners = np.empty(samples, dtype=np.int64)
    owners[generator.permutation(samples)] = np.arange(samples) % clients
    return from_owners(owners, clients)


def quantity(
    samples: int,
    clients: int,
    alpha: float,
    min_samples: int,
    generator: np.random.Generator,
    *,
    by_class: bool = False,
) -> Partition:
    """Quantity skew: the sizes' shares ~ Dirichlet(alpha), the samples of a client drawn at random.

    Args:
        by_class: whether the samples lie in the order of their classes (:func:`lie_by_class`).
    """
    check_enough(samples, clients, min_samples)
    owners = np.empty(samples, dtype=np.int64)
    _deal(owners, generator.permutation(samples), generator.dirichlet(np.full(clients, alpha)))
    leveled = _leveled_at_random if by_class else level
    return from_owners(leveled(owners, clients, min_samples, generator), clients)


def lognormal(
    samples: int,
    clients: int,
    sigma: float,
    min_samples: int,
    generator: np.random.Generator,
    *,
    by_class: bool = False,
) -> Partition:
    """Quantity skew: the sizes are in proportion to exp(sigma z) with z ~ N(0, 1), the samples drawn at random.

    Args:
        by_class: as of :func:`quantity`.
    """
    check_enough(samples, clients, min_samples)
    sizes = generator.lognormal(0.0, sigma, clients)
    owners = np.empty(samples, dtype=np.int64)
    _deal(owners, generator.permutation(samples), sizes / sizes.sum())
    leveled = _leveled_at_random if by_class else level
    return from_owners(leveled(owners, clients, min_samples, generator), clients)


def lie_by_class(labels: Integers) -> bool:
    """Whether neighbors have one class far more often than in random order, as where a folder is read class by class.

    Samples that :func:`level` moves go to clients in this order.
    """
    shares = np.unique(labels, return_counts=True)[1] / max(len(labels), 1)
    return bool((labels[1:] != labels[:-1]).mean() < (1 - (shares**2).sum()) / 2) if len(labels) > 1 else False


def dirichlet(
    labels: Integers, clients: int, alpha: float, min_samples: int, generator: np.random.Generator
) -> Partition:
    """Label skew (Hsu et al., arXiv 1909.06335): each class is dealt to the clients by shares ~ Dirichlet(alpha).

    Where published code draws again until every client has its minimum, which may never happen, this draws once: then
    the largest clients are cut down to a common level and their surplus, chosen at random, goes to the clients in need.
    """
    check_enough(len(labels), clients, min_samples)
    owners = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        members = generator.permutation(np.flatnonzero(labels == label))
        _deal(owners, members, generator.dirichlet(np.full(clients, alpha)))
    return from_owners(level(owners, clients, min_samples, generator), clients)


def shards(
    labels: Integers, clients: int, classes_per_client: int, min_samples: int, generator: np.random.Generator
) -> Partition:
    """Each client has exactly ``classes_per_client`` classes, with one shard of each.

    This is the quantity-based label imbalance of Li et al. (arXiv 2102.02079), "#C = k", but that larger classes are
    cut into more shards, so that shards are of about one size. The split of McMahan et al. (arXiv 1602.05629), whose
    shards may straddle two classes, is ``raysim.workloads.splits.skewed_splits.sorted_shards``. Only where shards are
    too small for ``min_samples`` does a client get samples of further classes, by the leveling of ``dirichlet``.
    """
    check_enough(len(labels), clients, min_samples)
    present, counts = np.unique(labels, return_counts=True)
    if classes_per_client > len(present):
        raise WorkloadError(
            f"shards: a client cannot have {classes_per_client} classes, the training data has {len(present)}; "
            f"set classes_per_client to 1..{len(present)}"
        )
    if clients * classes_per_client < len(present):
        raise WorkloadError(
            f"shards: {clients} clients with {classes_per_client} classes each cannot cover {len(present)} classes; "
            f"raise clients or classes_per_client until their product is at least {len(present)}"
        )
    shard_counts = _shard_counts(counts, clients, classes_per_client)
    holders: list[list[int]] = [[] for _ in present]
    remaining = shard_counts.copy()
    # Taking the classes with most shards left can always be completed (Gale-Ryser); ties are broken at random.
    for client in generator.permutation(clients):
        chosen = np.lexsort((generator.random(len(present)), -remaining))[:classes_per_client]
        remaining[chosen] -= 1
        for position in chosen:
            holders[position].append(int(client))
    owners = np.empty(len(labels), dtype=np.int64)
    for label, clients_of_label in zip(present, holders, strict=True):
        members = generator.permutation(np.flatnonzero(labels == label))
        owners[members] = np.array(clients_of_label)[np.arange(len(members)) % len(clients_of_label)]
    return from_owners(level(owners, clients, min_samples, generator), clients)


def sites(names: NDArray[np.str_]) -> tuple[Partition, NDArray[np.str_]]:
    """One client per distinct name, in sorted order, with the names. Real sites keep their sizes: no minimum."""
    clients, owners = np.unique(names, return_inverse=True)
    return from_owners(owners.reshape(-1), len(clients)), clients


def cut(partition: Partition, test_share: float, generator: np.random.Generator) -> tuple[Partition, Partition]:
    """(train, local test): of each client's samples, a random ``test_share`` (rounded) is its local test set.

    A client with two samples or more has at least one on both sides; a single sample is for training.
    """
    sizes, owners = partition.sizes, partition.owners
    wanted = np.floor(sizes * test_share + 0.5).astype(np.int64)
    tests = np.minimum(np.maximum(wanted, 1), np.maximum(sizes - 1, 0))
    in_test = ranks(owners, partition.clients, generator.permutation(len(owners))) < tests[owners]
    train = from_owners(np.where(in_test, -1, owners), partition.clients, partition.indices)
    test = from_owners(np.where(in_test, owners, -1), partition.clients, partition.indices)
    return train, test


def check_enough(samples: int, clients: int, min_samples: int) -> None:
    """WorkloadError unless every client can have its minimum."""
    if clients > samples:
        raise WorkloadError(
            f"{clients} clients are more than the {samples} training samples; set clients to at most {samples}"
        )
    if clients * min_samples > samples:
        raise WorkloadError(
            f"{samples} training samples cannot give each of {clients} clients min_samples = {min_samples} "
            f"({clients * min_samples} needed); set clients to at most {samples // min_samples} "
            f"or min_samples to at most {samples // clients}"
        )


def _deal(owners: Integers, members: Integers, shares: NDArray[np.float64]) -> None:
    """Gives consecutive parts of ``members`` to the clients, in proportion to ``shares``."""
    cuts = np.floor(np.cumsum(shares)[:-1] * len(members)).astype(np.int64)
    bounds = np.concatenate([[0], np.minimum(cuts, len(members)), [len(members)]])
    owners[members] = np.repeat(np.arange(len(shares)), np.diff(bounds))


def level(owners: Integers, clients: int, min_samples: int, generator: np.random.Generator) -> Integers:
    """Move as few samples as possible, from the largest clients, so that every client has ``min_samples``."""
    sizes = np.bincount(owners, minlength=clients)
    missing = np.maximum(min_samples - sizes, 0)
    needed = int(missing.sum())
    if needed == 0:
        return owners
    low, high = min_samples, int(sizes.max())
    while low < high:  # the highest level above which lie at least `needed` samples
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.maximum(sizes - middle, 0).sum() >= needed else (low, middle - 1)
    surplus = np.maximum(sizes - low, 0)
    surplus[np.flatnonzero(surplus)[: int(surplus.sum()) - needed]] -= 1  # the level is whole: give the excess back
    moved = ranks(owners, clients, generator.permutation(len(owners))) < surplus[owners]
    leveled = owners.copy()
    leveled[moved] = np.repeat(np.arange(clients), missing)
    return leveled


def _leveled_at_random(owners: Integers, clients: int, min_samples: int, generator: np.random.Generator) -> Integers:
    """Level clients whose samples were drawn at random: those that move go to any client, whatever their order."""
    leveled = level(owners, clients, min_samples, generator)
    return owners if leveled is owners else leveled[generator.permutation(len(leveled))]


def ranks(owners: Integers, clients: int, order: Integers) -> Integers:
    """The rank of each sample among its owner's samples, from 0, where all samples come in this order."""
    order = order[np.argsort(owners[order], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=clients))])
    found = np.empty(len(owners), dtype=np.int64)
    found[order] = np.arange(len(owners)) - starts[owners[order]]
    return found


def _shard_counts(counts: Integers, clients: int, classes_per_client: int) -> Integers:
    """Shards per class: one each, the others one by one to the class with the largest shards, at most one a client."""
    result = np.ones(len(counts), dtype=np.int64)
    heap = [(-float(count), position) for position, count in enumerate(counts) if clients > 1]
    heapq.heapify(heap)
    for _ in range(clients * classes_per_client - len(counts)):
        _, position = heapq.heappop(heap)
        result[position] += 1
        if result[position] < clients:
            heapq.heappush(heap, (-counts[position] / result[position], position))
    return result
