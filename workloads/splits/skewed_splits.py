"""Skewed splits of published studies, dealt client by client or cut from sorted samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.splits.partition import Integers, Partition, check_enough, from_owners, level


def sorted_shards(
    labels: Integers, clients: int, shards_per_client: int, min_samples: int, generator: np.random.Generator
) -> Partition:
    """Cut the samples, sorted by label, into equal shards and deal each client its number of them.

    This is the pathological split of McMahan et al. (arXiv 1602.05629, section 3): 100 clients with 2 of 200 shards of
    300 digits. Shards are cut at fixed places, so that one may straddle classes; where the samples cannot be divided
    evenly, shards differ by one sample. Samples of one class are in random order.
    """
    check_enough(len(labels), clients, min_samples)
    count = clients * shards_per_client
    if count > len(labels):
        raise WorkloadError(
            f"pathological: {clients} clients with {shards_per_client} shards each need {count} shards, more than the "
            f"{len(labels)} training samples; set shards_per_client to at most {len(labels) // clients}"
        )
    order = np.lexsort((generator.random(len(labels)), labels))
    holders = generator.permutation(count) % clients
    owners = np.empty(len(labels), dtype=np.int64)
    owners[order] = holders[np.arange(len(labels)) * count // len(labels)]
    return from_owners(level(owners, clients, min_samples, generator), clients)


def equal_dirichlet(
    labels: Integers, clients: int, alpha: float, min_samples: int, generator: np.random.Generator
) -> Partition:
    """Label skew of clients whose sizes differ by at most one (Hsu et al. 2019, arXiv 1909.06335, section 3).

    Each client draws shares of the classes ~ Dirichlet(alpha) and then its samples one by one and without replacement;
    what has run out is taken out of the shares. The paper's prior over classes is even here too.

    Args:
        labels: class of each sample, int64 [N].
    """
    present, codes = np.unique(labels, return_inverse=True)
    return pachinko(codes.reshape(-1), np.arange(len(present)), clients, alpha, 1.0, min_samples, generator)


def pachinko(  # noqa: PLR0913 - the symbols of the paper
    labels: Integers,
    superclasses: Integers,
    clients: int,
    alpha: float,
    beta: float,
    min_samples: int,
    generator: np.random.Generator,
) -> Partition:
    """Pachinko allocation (Reddi et al. 2021, arXiv 2003.00295, appendix): two levels of Dirichlet shares a client.

    Each client draws shares of the superclasses ~ Dirichlet(alpha) and, in each of these, of its classes ~
    Dirichlet(beta), and then its samples one by one and without replacement; what has run out is taken out of the
    shares. The paper has 500 clients with 100 samples each of CIFAR-100, alpha = 0.1 and beta = 10. Here clients' sizes
    differ by at most one, so that every sample belongs to a client.

    Args:
        labels: class of each sample, int64 [N].
        superclasses: superclass of each class, int64 [classes].
    """
    check_enough(len(labels), clients, min_samples)
    pools = [generator.permutation(np.flatnonzero(labels == label)) for label in range(len(superclasses))]
    left = np.array([len(pool) for pool in pools], dtype=np.int64)
    groups = [np.flatnonzero(superclasses == group) for group in np.unique(superclasses)]
    owners = np.empty(len(labels), dtype=np.int64)
    for client in range(clients):
        size = len(labels) // clients + (client < len(labels) % clients)
        shares = generator.dirichlet(np.full(len(groups), alpha))
        counts = draw_limited(size, shares, np.array([left[group].sum() for group in groups]), generator)
        for group, count in zip(groups, counts.tolist(), strict=True):
            inner = generator.dirichlet(np.full(len(group), beta))
            for label, taken in zip(group, draw_limited(count, inner, left[group], generator), strict=True):
                owners[pools[label][left[label] - taken : left[label]]] = client
                left[label] -= taken
    return from_owners(owners, clients)


def draw_limited(count: int, shares: NDArray[np.float64], limits: Integers, generator: np.random.Generator) -> Integers:
    """How often each category comes up in ``count`` draws by ``shares``, where a category ends at its limit.

    A draw from a category that has run out is drawn again from the others, by their shares among themselves; if these
    are all zero, evenly. ``count`` must not exceed the sum of the limits.
    """
    counts = np.zeros(len(shares), dtype=np.int64)
    while missing := count - int(counts.sum()):
        weights = np.where(counts < limits, shares, 0.0)
        if weights.sum() < np.finfo(float).tiny:
            weights = (counts < limits).astype(np.float64)
        drawn = generator.multinomial(missing, weights / weights.sum())
        counts += np.minimum(drawn, limits - counts)
    return counts


def quantiles(
    values: NDArray[np.floating], clients: int, min_samples: int, generator: np.random.Generator
) -> Partition:
    """Feature skew: the samples sorted by one number each, cut into as many quantiles as there are clients.

    Sizes differ by at most one; equal numbers are in random order.
    """
    check_enough(len(values), clients, min_samples)
    owners = np.empty(len(values), dtype=np.int64)
    owners[np.lexsort((generator.random(len(values)), values))] = np.arange(len(values)) * clients // len(values)
    return from_owners(owners, clients)
