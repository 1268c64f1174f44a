from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.aggregators import classifier_combination
from raysim.aggregators.classifier_combination import SMALLEST_WEIGHT, combination_weights, simplex_minimum
from raysim.aggregators.gram import Doubles

GRID = 200


def objective_matrix(i: int, variances: Doubles, means: Doubles) -> Doubles:
    """diag(V) + B_i as METHODS prints it: [j, l] = Σ_c ⟨a_i,c - a_j,c , a_i,c - a_l,c⟩."""
    count = len(variances)
    bias = [[sum((means[i] - means[j])[c] @ (means[i] - means[k])[c] for c in range(means.shape[1]))
             for k in range(count)] for j in range(count)]  # fmt: skip
    return np.asarray(np.diag(variances) + np.array(bias))


def grid_of_three() -> Doubles:
    return np.array([[a, b, GRID - a - b] for a in range(GRID + 1) for b in range(GRID + 1 - a)]) / GRID


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(0.001, 10))
def test_three_clients_against_a_brute_force_grid(seed: int, spread: float) -> None:
    generator = np.random.default_rng(seed)
    means = spread * generator.standard_normal((3, 2, 4))
    variances = generator.uniform(0.01, 5, 3)
    weights = combination_weights(variances, means)
    grid = grid_of_three()
    for i in range(3):
        matrix = objective_matrix(i, variances, means)
        values = np.einsum("gj,jk,gk->g", grid, matrix, grid)
        found = weights[i] @ matrix @ weights[i]
        # Never worse than the best point of the grid (but for zeroed small weights), and next to it.
        assert found <= values.min() + 3 * SMALLEST_WEIGHT * np.abs(matrix).max()
        np.testing.assert_allclose(weights[i], grid[values.argmin()], atol=2.5 / GRID)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_minimum_satisfies_the_optimality_conditions(count: int, rank: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    factor = generator.standard_normal((count, rank))
    matrix = factor @ factor.T + np.diag(generator.uniform(0, 0.1, count))
    alpha = simplex_minimum(matrix)
    assert (alpha >= 0).all()
    np.testing.assert_allclose(alpha.sum(), 1, rtol=1e-14)
    slope = matrix @ alpha  # equal where α > 0, at least that elsewhere
    np.testing.assert_allclose(slope[alpha > 1e-9], alpha @ matrix @ alpha, rtol=1e-5, atol=1e-8)
    assert (slope >= alpha @ matrix @ alpha - 1e-8).all()


def test_without_bias_weights_are_inverse_variances() -> None:
    means = np.ones((3, 2, 2))
    np.testing.assert_allclose(combination_weights(np.array([1.0, 2.0, 4.0]), means), np.tile([4, 2, 1], (3, 1)) / 7)


def test_far_apart_clients_keep_their_own_heads() -> None:
    means = 1e3 * np.eye(4).reshape(4, 2, 2)
    assert np.array_equal(combination_weights(np.ones(4), means), np.eye(4))


def test_small_weights_are_zeroed_and_the_rest_renormalized() -> None:
    weights = combination_weights(np.array([1.0, 1.0, 1e4]), np.zeros((3, 1, 1)))
    np.testing.assert_allclose(weights, [[0.5, 0.5, 0.0]] * 3, rtol=1e-12)
    assert (weights[:, 2] == 0).all()


@pytest.mark.parametrize("variances", [[0.0, 0.0, 0.0], [-1e-18, -1e-18, 0.0]])
def test_nothing_to_choose_by_is_the_plain_mean(variances: list[float]) -> None:
    np.testing.assert_allclose(combination_weights(np.array(variances), np.ones((3, 2, 2))), 1 / 3)


def test_one_client() -> None:
    assert combination_weights(np.array([0.3]), np.ones((1, 2, 2), np.float32)).tolist() == [[1.0]]


def test_of_many_equal_clients_none_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1,000 of them each weight is below the smallest, and the row was 0 / 0; here with three, and a half."""
    monkeypatch.setattr(classifier_combination, "SMALLEST_WEIGHT", 0.5)
    assert combination_weights(np.zeros(3), np.zeros((3, 1, 1))) == pytest.approx(np.full((3, 3), 1 / 3))
