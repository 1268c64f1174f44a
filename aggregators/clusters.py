"""Splitting a cluster of clients in two by their updates, as clustered federated learning does.

Source: Xie et al. 2021, Federated graph classification over non-IID graphs (NeurIPS; arXiv 2106.13423), whose rule is
that of Sattler et al. 2020 (arXiv 1910.01991). A cluster splits when its clients pull apart although together they
hardly move: ‖mean Δ‖ < ε₁ and max ‖Δ_i‖ > ε₂. The cut is the minimum cut (Stoer and Wagner) of the complete graph with
weights cos(Δ_i, Δ_j) + 1, so that clients of opposed directions are put apart. All of it is n × n algebra on the Gram
matrix of the updates (aggregators/gram.py).
"""

from __future__ import annotations

import numpy as np

from raysim.aggregators.gram import Doubles

SMALLEST_PRODUCT = 1e-12
"""Least ‖Δ_i‖ ‖Δ_j‖ that a cosine is divided by (the authors' code): an update of zero has cosine 0 with all others."""


def mean_norm(gram: Doubles) -> float:
    """‖(1/n) Σ_i Δ_i‖ of the Gram matrix [n, n] of n updates: uniform, whatever the clients' samples."""
    return float(np.sqrt(max(float(gram.sum()), 0.0)) / len(gram))


def largest_norm(gram: Doubles) -> float:
    """max_i ‖Δ_i‖."""
    return float(np.sqrt(max(float(np.diag(gram).max()), 0.0)))


def similarities(gram: Doubles) -> Doubles:
    """cos(Δ_i, Δ_j) + 1, [n, n], from 0 (opposite) to 2 (same direction)."""
    norms = np.sqrt(np.maximum(np.diag(gram), 0.0))
    cosines = gram / np.maximum(np.outer(norms, norms), SMALLEST_PRODUCT)
    # Rounding must not make a weight negative: the minimum cut is not defined then.
    return np.asarray(np.clip(cosines, -1.0, 1.0) + 1.0)


def minimum_cut(weights: Doubles) -> tuple[list[int], list[int]]:
    """The two sides, each ascending and the one with number 0 first, of a minimum cut between n ≥ 2 vertices.

    Args:
        weights: symmetric, not negative, [n, n]; the diagonal does not count.
    """
    import networkx  # late: 0.2 s, and listing methods must not wait for it

    graph = networkx.Graph()
    graph.add_nodes_from(range(len(weights)))
    for i in range(len(weights)):
        for j in range(i + 1, len(weights)):
            graph.add_edge(i, j, weight=float(weights[i, j]))  # also if zero: networkx wants a connected graph
    _, (one, other) = networkx.stoer_wagner(graph)
    first, second = sorted(one), sorted(other)
    return (first, second) if first[0] == 0 else (second, first)


def least_cosine_across(gram: Doubles) -> tuple[list[int], list[int], float]:
    """The two sides, each ascending and the one with number 0 first, whose largest cosine across is least; and that.

    Pairs of the n ≥ 2 updates are joined from the largest cosine down until two groups are left, which is optimal.

    Source: Sattler et al. 2021 (arXiv 1910.01991), Algorithm 1 (Optimal bipartition).
    """
    count = len(gram)
    cosines = similarities(gram) - 1.0
    rows, columns = np.triu_indices(count, 1)
    group = np.arange(count)
    left = count
    for place in np.argsort(-cosines[rows, columns], kind="stable"):
        one, other = group[rows[place]], group[columns[place]]
        if one == other:
            continue
        if left == 2:  # the first pair that is not joined is the nearest across
            break
        group[group == other] = one
        left -= 1
    first = group == group[0]
    across = float(cosines[np.ix_(first, ~first)].max())
    return np.flatnonzero(first).tolist(), np.flatnonzero(~first).tolist(), across
