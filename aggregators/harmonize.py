"""FedGH's gradient harmonization, in the space of the clients.

Source: Zhang et al. 2023, Tackling the non-IID issue in heterogeneous federated learning by gradient harmonization
(arXiv 2309.06692). With g̃ the gradients as they came and g what becomes of them, each conflicting pair i < j does

    g_i ← g_i - ⟨g_i, g̃_j⟩ / ‖g̃_j‖² · g̃_j,      g_j ← g_j - ⟨g_j, g̃_i⟩ / ‖g̃_i‖² · g̃_i.

So what is removed is the *present* g_i's component along the *original* g_j. Where the paper is open: a pair conflicts
if its originals do, ⟨g̃_i, g̃_j⟩ < 0, and pairs come in client order, (0, 1), (0, 2), …, (1, 2), … ; a later removal may
bring back part of an earlier component, so the order matters.
"""

from __future__ import annotations

import numpy as np

from raysim.aggregators.gram import Doubles, one_blas_thread


def harmonized_coefficients(gram: Doubles, weights: Doubles) -> Doubles:
    """c, float64 [n], with Σ_i weights_i g_i = Σ_j c_j g̃_j, from the Gram matrix [n, n] of gradients or of updates.

    Every g_i is a row of coefficients over the originals, so a projection costs n instead of d operations.
    """
    rows = np.eye(len(gram))
    with one_blas_thread():
        for i, j in zip(*np.nonzero(np.triu(gram, 1) < 0), strict=True):
            rows[i, j] -= rows[i] @ gram[:, j] / gram[j, j]
            rows[j, i] -= rows[j] @ gram[:, i] / gram[i, i]
        return np.asarray(weights @ rows)
