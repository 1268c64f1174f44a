"""FedLD's principal gradients: every client's gradient is turned toward the leading axes of all of them.

Source: Zeng et al. 2024, Tackling data heterogeneity in federated learning via loss decomposition, Eq. 4-7. All of it
happens in the space of the clients: with G [n, d] the gradients as rows and G Gᵀ / n = Σ_k λ_k e_k e_kᵀ, the axes are
v_k = Gᵀ e_k / √(n λ_k), so that ⟨g_i, v_k⟩ = √(n λ_k) e_ki and

    r_i = Σ_k λ_k ⟨g_i, v_k⟩ v_k = Σ_j (Σ_k λ_k e_ki e_kj) g_j,      ‖r_i‖² = Σ_k n λ_k³ e_ki².

The authors' code brings every axis' component to its length by itself (:func:`authors_coefficients`).

No axis of length d is ever formed, nothing is divided by λ_k, and the result is one set of n coefficients. Updates
Δ_i = -g_i have the same Gram matrix and thus the same coefficients: no sign has to be changed anywhere.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from raysim.aggregators.gram import Doubles, one_blas_thread

Conflict = Literal["keep", "drop"]

# Entries of a unit eigenvector, and means over it, below this are rounding (see gram_matrix). Without it, the length
# correction would blow up the noise of a client that has no component on any leading axis to the client's full length.
NOISE = 1e-7


def axes_kept(clients: int, share: float) -> int:
    """K = max(1, ⌊share · n⌋)."""
    # Rounded first: 0.29 · 100 is a little under 29 in floating point.
    return max(1, int(np.floor(round(share * clients, 9))))


def principal_coefficients(
    gram: Doubles, share: float = 0.8, conflict: Conflict = "keep", weights: Doubles | None = None
) -> Doubles:
    """c, float64 [n], with Σ_i p_i g_i' = Σ_j c_j g_j, from the Gram matrix [n, n] of gradients or of updates.

    Args:
        share: of the n axes that are kept, see :func:`axes_kept`.
        conflict: what happens to a client's component against the calibrated direction of an axis (Eq. 6, the side on
            which the mean gradient lies). ``keep``: it counts, as printed; then the calibration changes nothing.
            ``drop``: it is discarded. An axis on which the mean gradient has no component has no calibrated direction
            (sign 0): ``drop`` discards it for everyone.
        weights: p_i, which sum to one [n]; None: 1/n each, as printed.

    A client without a component on the leading axes (under 1e-7 of all) contributes 0; all others keep their length.
    Where eigenvalues are equal the axes are not unique: LAPACK's choice counts, which is the same every time, but
    depends on the order of the clients if the equal ones straddle K, or with ``drop``.
    """
    count = len(gram)
    weights = np.full(count, 1 / count) if weights is None else weights
    with one_blas_thread():
        values, axes, wanted = _leading_axes(gram, share)
        components = axes
        if conflict == "drop":
            along_mean = weights @ axes
            axes = axes * np.where(np.abs(along_mean) > NOISE, np.sign(along_mean), 0.0)
            components = np.maximum(axes, 0.0)
        lengths = np.sqrt(count * (components**2 @ values**3))
        correction = np.divide(wanted, lengths, out=np.zeros(count), where=lengths > 0)
        return np.asarray((((weights * correction) @ components) * values) @ axes.T)


def authors_coefficients(
    gram: Doubles, share: float = 0.8, conflict: Conflict = "keep", weights: Doubles | None = None
) -> Doubles:
    """c, float64 [n], with Σ_i p_i g_i' = Σ_j c_j g_j, by the rule of the authors' code (github.com/Zeng-Shuang/FedLD).

    Every axis' component is brought to the length (λ_k / Σλ) ‖g_i‖ by itself, whatever it was before,

        g_i' = Σ_{k ≤ K} (λ_k / Σλ) ‖g_i‖ sign⟨g_i, v_k⟩ v_k,

    and the sum is not brought to ‖g_i‖, so it is shorter. The direction of an axis is that of the majority of clients,
    which matters with ``conflict drop`` only; a tie has none. Arguments as for :func:`principal_coefficients`.

    Departures from that code: K is at least 1 (a lone client's update would vanish), and a client without a component
    on an axis contributes nothing there (0/0 in the code).
    """
    count = len(gram)
    weights = np.full(count, 1 / count) if weights is None else weights
    with one_blas_thread():
        values, axes, lengths = _leading_axes(gram, share)
        signs = np.sign(axes)
        if conflict == "drop":
            majority = np.sign(signs.sum(axis=0))
            signs = np.where(signs == majority, signs, 0.0)
        # v_k = Gᵀ e_k / √(n λ_k), and the eigenvalues here sum to 1.
        return np.asarray((((weights * lengths) @ signs) * np.sqrt(values / count)) @ axes.T)


def _leading_axes(gram: Doubles, share: float) -> tuple[Doubles, Doubles, Doubles]:
    """Principal axes of gradients divided by their root mean square length (zeros if all are zero), for both rules.

    λ_k / Σλ of the K leading axes, descending [K]; their e_ki in row i, column k [n, K], rounding set to 0; ‖g_i‖ [n].
    """
    count = len(gram)
    scale = float(np.trace(gram)) / count or 1.0
    ascending, columns = np.linalg.eigh(gram / (scale * count))
    kept = axes_kept(count, share)
    values = ascending[::-1][:kept].copy()
    values[values <= count * np.finfo(np.float64).eps * values[0]] = 0.0
    axes = columns[:, ::-1][:, :kept]
    lengths = np.sqrt(np.maximum(np.diag(gram) / scale, 0.0))
    return values, np.where(np.abs(axes) > NOISE, axes, 0.0), lengths
