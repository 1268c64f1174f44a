"""FedLD's decomposition of the global loss, a diagnostic for any method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def decompose(
    shares: NDArray[np.float64], losses: NDArray[np.float64], global_losses: NDArray[np.float64] | None
) -> dict[str, float]:
    """Columns of the rounds table: the three terms of FedLD, Eq. 2, from measured losses, and their sum.

    - ``local_loss``: Σ_i p_i L_i(θ_i).
    - ``distribution_shift_term``: Σ_i Σ_j p_i p_j (L_j(θ_i) − L_i(θ_i)); ``distribution_shift_loss`` is its absolute
      value, as in the paper.
    - ``aggregation_term``: Σ_j p_j L_j(θ⁺) − Σ_i Σ_j p_i p_j L_j(θ_i); ``aggregation_loss`` is its absolute value.
      Aggregation mostly lowers the loss (a negative term): a smaller absolute value can then mean less gain.
    - ``global_loss``: Σ_j p_j L_j(θ⁺), what the three terms add up to. Without a global model, it and the aggregation
      term are nan.

    Args:
        shares: p_i = m_i / m [n].
        losses: L_j(θ_i), row i the client whose model it is, column j whose training data [n, n].
        global_losses: L_j(θ⁺), the new global model on every client's training data [n]; None: there is none.

    Raises:
        ValueError: shapes that do not agree.
    """
    count = len(shares)
    if global_losses is None:
        global_losses = np.full(count, np.nan)
    if losses.shape != (count, count) or global_losses.shape != (count,):
        raise ValueError(f"expected losses [{count}, {count}] and [{count}], got {losses.shape}, {global_losses.shape}")
    local = float(shares @ np.diag(losses))
    everywhere = float(shares @ losses @ shares)
    shift, aggregation = everywhere - local, float(shares @ global_losses) - everywhere
    return {
        "local_loss": local,
        "distribution_shift_loss": abs(shift),
        "aggregation_loss": abs(aggregation),
        "distribution_shift_term": shift,
        "aggregation_term": aggregation,
        "global_loss": local + shift + aggregation,
    }
