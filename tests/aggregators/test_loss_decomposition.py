"""FedLD's loss decomposition: numbers by hand, and the identity that defines it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.aggregators.loss_decomposition import decompose


def test_two_clients_by_hand() -> None:
    # p = 1/4, 3/4. L_j(θ_i) = [[1, 5], [3, 2]], L_j(θ⁺) = 2, 4.
    # local = 1/4·1 + 3/4·2 = 1.75; everywhere = 1/16·1 + 3/16·5 + 3/16·3 + 9/16·2 = 2.6875; shift = 0.9375;
    # global = 1/4·2 + 3/4·4 = 3.5; aggregation = 0.8125.
    found = decompose(np.array([0.25, 0.75]), np.array([[1.0, 5.0], [3.0, 2.0]]), np.array([2.0, 4.0]))
    terms = {"local_loss": 1.75, "distribution_shift_term": 0.9375, "aggregation_term": 0.8125, "global_loss": 3.5}
    assert found == pytest.approx(terms | {"distribution_shift_loss": 0.9375, "aggregation_loss": 0.8125})


def test_the_columns_hold_absolute_values_and_signed_terms() -> None:
    # A model that is better abroad than at home, and a global model that is better than all: both terms negative.
    found = decompose(np.array([0.5, 0.5]), np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0.5, 0.5]))
    absolute = {"local_loss": 2.0, "distribution_shift_loss": 0.5, "aggregation_loss": 1.0, "global_loss": 0.5}
    assert found == pytest.approx(absolute | {"distribution_shift_term": -0.5, "aggregation_term": -1.0})


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.integers(0, 2**31))
def test_the_terms_add_up_to_the_global_loss(clients: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    samples = draw.integers(1, 100, clients)
    shares = samples / samples.sum()
    global_losses = draw.exponential(size=clients)
    found = decompose(shares, draw.exponential(size=(clients, clients)), global_losses)
    assert found["global_loss"] == pytest.approx(float(shares @ global_losses), rel=1e-12)


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"\[2, 2\]"):
        decompose(np.full(2, 0.5), np.zeros((3, 3)), np.zeros(2))
