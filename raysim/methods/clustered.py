"""Clustered federated learning: clients whose updates point different ways are put apart, again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.clusters import least_cosine_across
from raysim.aggregators.gram import Doubles
from raysim.method import Traits
from raysim.methods._splitting_clusters import COMPARES, SplittingClusters
from raysim.workloads.option_types import Help, NonNegative, NonNegativeInt, Share


@dataclass(frozen=True)
class Clustered(SplittingClusters):
    """Clustered FL: FedAvg inside clusters, each cut in two when it hardly moves although its clients do.

    Source: Sattler, Müller and Samek 2021, Clustered federated learning (IEEE TNNLS 32(8); arXiv 1910.01991),
    Algorithms 1 to 4. With p_i = m_i / Σ_j m_j over the cluster, it is cut into c₁ and c₂ where

        ‖Σ_i p_i Δ_i‖ < ε₁,    max_i ‖Δ_i‖ > ε₂,    α = max_{i ∈ c₁, j ∈ c₂} cos(Δ_i, Δ_j) < √((1 − γ) / 2),

    of all cuts the one with the least α (aggregators/clusters.py), as printed; the authors' code has complete linkage
    and the plain mean, and no bound on α.

    Decided here:
    - A cluster of one or two never splits, none in the first ``quiet_rounds``; a split takes effect at once, before the
      round's mean (all as in the authors' code).
    - Only clients that took part in the round are divided (:class:`SplittingClusters` says who else goes where); the
      paper asks for all clients and has a tree for new ones.
    """

    small_mean: Annotated[NonNegative, Help("ε1, which a cluster's mean must be under", "authors' code, EMNIST")] = 0.4
    large_update: Annotated[NonNegative, Help("ε2, which an update must be over", "authors' code, EMNIST")] = 1.6
    gamma: Annotated[Share, Help("γ: cosines across stay under √((1-γ)/2)", "Sattler et al. 2021, Algorithm 4")] = 0.0
    quiet_rounds: Annotated[NonNegativeInt, Help("first rounds in which no cluster is split", "authors' code")] = 20

    traits: ClassVar[Traits] = Traits(
        personal=True, one_vector=True, plain_training=True, reports=("clusters",), needs_several=COMPARES
    )

    def halves(self, gram: Doubles, weights: NDArray[np.float64]) -> tuple[list[int], list[int]] | None:
        length = float(np.sqrt(max(float(weights @ gram @ weights), 0.0)))
        if length >= self.small_mean:
            return None
        first, second, across = least_cosine_across(gram)
        return (first, second) if across < np.sqrt((1 - self.gamma) / 2) else None


METHOD = Clustered
