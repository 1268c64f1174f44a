"""FedNova: changes are divided by the local work behind them before they are averaged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raysim.aggregators.descent import plain_steps
from raysim.aggregators.gram import combine
from raysim.aggregators.means import sample_weights
from raysim.method import Context, Traits, Updates, Vector
from raysim.methods.fedavg import FedAvg


@dataclass(frozen=True)
class FedNova(FedAvg):
    """FedNova: FedAvg in which a client with more local steps pulls no harder, θ⁺ = θ + (Σ p_k a_k) Σ p_k Δ_k / a_k.

    Source: Wang et al. 2020, Tackling the objective inconsistency problem in heterogeneous federated optimization
    (NeurIPS; arXiv 2007.07481), Section 5. a_k = ‖a_k‖₁ is the sum of the weights with which the gradients of client
    k's steps are in its change Δ_k: the number of steps without momentum (aggregators/descent.py says what it is with
    it), and p_k = m_k / Σ_j m_j over the cohort. Where all clients make the same number of steps this is FedAvg.

    Decided here: the factor Σ_k p_k a_k is the paper's τ_eff with ‖a_k‖₁ in the place of τ_k, also with momentum. A
    client without a step has Δ_k = 0 and is left out of the second sum. BatchNorm's statistics are averaged by p_k.
    """

    defaults: ClassVar[Mapping[str, object]] = {"training.optimizer": "sgd"}  # graph workloads have adamw otherwise

    traits: ClassVar[Traits] = Traits(
        one_vector=True,
        one_model=True,
        plain_training=True,
        needs_sgd="which divides a client's change by its steps of sgd",
        reports=("effective_steps",),
        needs_several="which evens out the numbers of local steps of several clients",
    )

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        shares = sample_weights(updates.samples)
        lengths = plain_steps(updates.metric("steps").astype(np.int64), context.training.momentum)
        effective = float(shares @ lengths)
        weights = [share * effective / length if length else 0.0 for share, length in zip(shares, lengths, strict=True)]
        context.report.round("effective_steps", effective)
        context.report.clients("weight", np.array(weights))
        pieces = [0, context.shared_parameter_count, server.size]
        return server + combine(updates.deltas, pieces, [weights, shares.tolist()])


METHOD = FedNova
