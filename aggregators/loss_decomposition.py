"""FedLD's decomposition of the global loss, a diagnostic for any method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LossDecomposition:
    """The three terms of FedLD, Eq. 2; ``shift`` and ``aggregation`` keep their sign here."""

    local: float
    """Σ_i p_i L_i(θ_i)"""
    shift: float
    """Σ_i Σ_j p_i p_j (L_j(θ_i) − L_i(θ_i)), whose absolute value is the distribution-shift loss."""
    aggregation: float
    """Σ_j p_j L_j(θ⁺) − Σ_i Σ_j p_i p_j L_j(θ_i), whose absolute value is the aggregation loss."""

    @property
    def total(self) -> float:
        """Σ_j p_j L_j(θ⁺), the global loss: what the three terms add up to."""
        return self.local + self.shift + self.aggregation

    def columns(self) -> dict[str, float]:
        """The rounds table's columns: the absolute values of the paper, the signed terms, and their sum.

        Aggregation mostly lowers the loss (a negative term): a smaller absolute value can then mean less gain.
        """
        return {
            "local_loss": self.local,
            "distribution_shift_loss": abs(self.shift),
            "aggregation_loss": abs(self.aggregation),
            "distribution_shift_term": self.shift,
            "aggregation_term": self.aggregation,
            "global_loss": self.total,
        }


def decompose(
    shares: NDArray[np.float64], losses: NDArray[np.float64], global_losses: NDArray[np.float64]
) -> LossDecomposition:
    """Eq. 2 from measured losses.

    Args:
        shares: p_i = m_i / m [n].
        losses: L_j(θ_i), row i the client whose model it is, column j whose training data [n, n].
        global_losses: L_j(θ⁺), the new global model on every client's training data [n].

    Raises:
        ValueError: shapes that do not agree.
    """
    count = len(shares)
    if losses.shape != (count, count) or global_losses.shape != (count,):
        raise ValueError(f"expected losses [{count}, {count}] and [{count}], got {losses.shape}, {global_losses.shape}")
    local = float(shares @ np.diag(losses))
    everywhere = float(shares @ losses @ shares)
    return LossDecomposition(local, everywhere - local, float(shares @ global_losses) - everywhere)
