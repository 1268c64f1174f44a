"""GCFL: clients form clusters by their updates, and each cluster is a federation of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.clusters import mean_norm, minimum_cut, similarities
from raysim.aggregators.gram import Doubles
from raysim.method import Traits
from raysim.methods._splitting_clusters import COMPARES, SplittingClusters
from raysim.workloads.option_types import Help, NonNegative, NonNegativeInt


@dataclass(frozen=True)
class GCFL(SplittingClusters):
    """GCFL: FedAvg inside clusters; a cluster splits in two where its clients' updates pull apart.

    Source: Xie et al. 2021, Federated graph classification over non-IID graphs (NeurIPS; arXiv 2106.13423); the rule of
    the split is in aggregators/clusters.py, what a split does in :class:`SplittingClusters`. As in the authors' code a
    split takes effect before the round's updates are averaged, and the mean in ‖mean Δ‖ is uniform while a cluster's
    FedAvg is weighted by samples. Clients of different tasks share the graph convolutions alone, as there
    (raysim/client_side/sharing.py).

    Departure: the authors report the best of all clusterings a client went through, here it is judged by its cluster's
    current model.
    """

    small_mean: Annotated[
        NonNegative,
        Help(
            "ε1: a cluster splits only while the norm of its mean update is smaller (the authors' runs: 0.07 on"
            " SM and with BIO, 0.08 with SN)",
            "Xie et al. 2021",
        ),
    ] = 0.05
    large_update: Annotated[
        NonNegative,
        Help(
            "ε2: and while the norm of one of its updates is larger (the authors' runs: 0.28 on SM, 0.35 with"
            " BIO, 0.4 with SN)",
            "Xie et al. 2021",
        ),
    ] = 0.1
    quiet_rounds: Annotated[
        NonNegativeInt, Help("first rounds in which no cluster is split", "Xie et al. 2021 (code)")
    ] = 20

    traits: ClassVar[Traits] = Traits(personal=True, one_vector=True, reports=("clusters",), needs_several=COMPARES)
    defaults: ClassVar[Mapping[str, object]] = {"workload.name": "toy-graphs", "model.name": "gin"}

    def halves(self, gram: Doubles, weights: NDArray[np.float64]) -> tuple[list[int], list[int]] | None:
        return minimum_cut(similarities(gram)) if mean_norm(gram) < self.small_mean else None


METHOD = GCFL
