"""FedPAC's classifier combination: which clients' heads each client's own head is made of.

Source: Xu et al. 2023, Personalized federated learning with feature alignment and classifier collaboration (arXiv
2306.11867), section 4.2: the weights of client i minimize variance plus squared bias of its combined head,

    α_i = argmin over the simplex of αᵀ (diag(V) + B_i) α,   B_i[j, l] = Σ_c ⟨a_i,c - a_j,c , a_i,c - a_l,c⟩.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.gram import Doubles, one_blas_thread

SMALLEST_WEIGHT = 1e-3


def combination_weights(variances: Doubles, class_means: NDArray[np.floating]) -> Doubles:
    """α, float64 [n, n]: row i holds client i's weights over the n clients' heads; each row sums to one.

    Args:
        variances: V [n], not negative up to rounding.
        class_means: a_i,c = π_i,c · E_i[h|c], [n, classes, features]; zero for classes that a client lacks.

    Weights under 1e-3 are zeroed and the rest renormalized.
    """
    count = len(variances)
    flat = class_means.reshape(count, -1).astype(np.float64)
    result = np.empty((count, count), np.float64)
    with one_blas_thread():
        # Centered first: B depends on differences only, and this keeps it from canceling. Then n × n algebra is enough.
        centered = flat - flat.mean(axis=0)
        gram = centered @ centered.T
        for i in range(count):
            bias = gram[i, i] - gram[i][:, None] - gram[i][None, :] + gram
            alpha = simplex_minimum(np.diag(np.maximum(variances, 0.0)) + bias)
            if alpha.max() >= SMALLEST_WEIGHT:  # of thousands of equal clients all are smaller
                alpha[alpha < SMALLEST_WEIGHT] = 0.0
            result[i] = alpha / alpha.sum()
    return result


def simplex_minimum(matrix: Doubles) -> Doubles:
    """argmin of αᵀ P α over α ≥ 0, Σ α = 1, float64 [n], for a symmetric positive semidefinite P [n, n].

    Solved exactly, by SciPy's active-set method for non-negative least squares: with P = LᵀL, minimize ‖L x‖² +
    (Σ x - 1)² over x ≥ 0. On every ray x = s α the best s leaves αᵀPα / (αᵀPα + 1), which grows with αᵀPα, so x is the
    wanted α times a number. If P is zero every α is as good: the plain mean.

    Raises:
        RuntimeError: the active set did not settle (SciPy's limit on iterations).
    """
    from scipy.optimize import nnls  # late: half a second, and listing methods must not wait for it

    count = len(matrix)
    scale = float(np.trace(matrix)) / count
    if scale <= 0.0:
        return np.full(count, 1.0 / count)
    values, vectors = np.linalg.eigh(matrix / scale)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    system = np.vstack([root, np.ones(count)])
    target = np.append(np.zeros(count), 1.0)
    solution, _ = nnls(system, target, maxiter=max(100, 10 * count))
    return np.asarray(solution / solution.sum(), np.float64)
