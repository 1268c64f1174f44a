"""Federated averaging of harmonized updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raysim.aggregators.gram import combine, gram_matrix
from raysim.aggregators.harmonize import harmonized_coefficients
from raysim.aggregators.means import sample_weights
from raysim.method import Context, Traits, Updates, Vector
from raysim.methods.fedavg import FedAvg


@dataclass(frozen=True)
class FedGH(FedAvg):
    """FedGH: FedAvg in which conflicting pairs of updates are first projected off each other.

    Source: Zhang et al. 2023, Tackling the non-IID issue in heterogeneous federated learning by gradient harmonization
    (arXiv 2309.06692); the exact rule, and what the paper leaves open, is in aggregators/harmonize.py. The harmonized
    updates are averaged by samples, as the paper does; without a conflict this is FedAvg. BatchNorm's running
    statistics are averaged by samples and play no part in the harmonization.
    """

    traits: ClassVar[Traits] = Traits(
        one_vector=True,
        one_model=True,
        plain_training=True,
        reports=("conflicting_pairs",),
        needs_several="which projects pairs of updates off each other",
    )

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        stop = context.shared_parameter_count
        shares = sample_weights(updates.samples)
        gram = gram_matrix(updates.deltas, 0, stop)
        coefficients = harmonized_coefficients(gram, shares)
        context.report.clients("weight", coefficients)
        context.report.round("conflicting_pairs", float(np.count_nonzero(np.triu(gram, 1) < 0)))
        return server + combine(updates.deltas, [0, stop, server.size], [coefficients.tolist(), shares.tolist()])


METHOD = FedGH
