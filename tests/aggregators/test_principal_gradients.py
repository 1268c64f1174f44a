from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.aggregators.gram import Doubles, combine, gram_matrix, piece_grams
from raysim.aggregators.principal_gradients import Conflict, authors_coefficients, axes_kept, principal_coefficients

CONFLICTS: list[Conflict] = ["keep", "drop"]
# Three clients in four dimensions; the third stands against the other two.
HAND = np.array([[3.0, 1.0, 0.0, 1.0], [2.0, -1.0, 1.0, 0.0], [-1.0, 0.5, 2.0, 1.0]])


def principal_weights(
    vectors: Any, boundaries: list[int], share: float = 0.8, conflict: Conflict = "keep"
) -> list[Doubles]:
    return [principal_coefficients(gram, share, conflict) for gram in piece_grams(vectors, boundaries)]


def directly(gradients: Doubles, share: float, conflict: Conflict) -> Doubles:
    """All g_i' [n, d] by an SVD of the d-dimensional gradients, step by step as the paper has it."""
    count = len(gradients)
    _, singular, axes = np.linalg.svd(gradients, full_matrices=False)
    eigenvalues = singular**2 / count
    mean = gradients.mean(axis=0)
    revised = np.zeros_like(gradients)
    for i, gradient in enumerate(gradients):
        total = np.zeros(gradients.shape[1])
        for k in range(min(axes_kept(count, share), len(axes))):
            axis = axes[k]
            if conflict == "drop":
                axis = np.sign(axis @ mean) * axis
            along = gradient @ axis
            if conflict == "drop":
                along = max(0.0, along)
            total += eigenvalues[k] * along * axis
        length = np.linalg.norm(total)
        if length > 1e-9 * np.linalg.norm(gradient):
            revised[i] = total * np.linalg.norm(gradient) / length
    return revised


def in_gram_space(gradients: Doubles, share: float, conflict: Conflict) -> Doubles:
    return principal_coefficients(gradients @ gradients.T, share, conflict) @ gradients


@pytest.mark.parametrize("share", [0.34, 0.8, 1.0])
@pytest.mark.parametrize("conflict", CONFLICTS)
def test_three_clients_in_four_dimensions_against_an_svd(conflict: Conflict, share: float) -> None:
    expected = directly(HAND, share, conflict).mean(axis=0)
    np.testing.assert_allclose(in_gram_space(HAND, share, conflict), expected, rtol=1e-12)
    np.testing.assert_allclose(in_gram_space(-HAND, share, conflict), -expected, rtol=1e-12)


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_layers_against_an_svd_of_each(conflict: Conflict) -> None:
    vectors = list(HAND.astype(np.float32))
    weights = principal_weights(vectors, [0, 3, 4], 0.8, conflict)
    found = combine(vectors, [0, 3, 4], [w.tolist() for w in weights])
    expected = np.concatenate(
        [directly(HAND[:, piece], 0.8, conflict).mean(axis=0) for piece in (slice(3), slice(3, 4))]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    whole = combine(vectors, [0, 4], [principal_weights(vectors, [0, 4], 0.8, conflict)[0].tolist()])
    assert not np.allclose(found, whole)


def test_by_hand_without_any_svd() -> None:
    # Axes (1, 0) with n λ = 8 and (0, 1) with n λ = 2; g_1 and g_2 = (2, ±1): r = (4·2, ±1·1), length √5 / √65.
    gradients = np.array([[2.0, 1.0], [2.0, -1.0]])
    np.testing.assert_allclose(in_gram_space(gradients, 1.0, "keep"), [8 * np.sqrt(5 / 65), 0], atol=1e-15)
    # The mean has no component along (0, 1), which drop then discards: both become (√5, 0). So does K = 1.
    np.testing.assert_allclose(in_gram_space(gradients, 1.0, "drop"), [np.sqrt(5), 0], atol=1e-15)
    np.testing.assert_allclose(in_gram_space(gradients, 0.5, "keep"), [np.sqrt(5), 0], atol=1e-15)


def test_weights_by_samples_by_hand() -> None:
    # As above, g_1' = √5/√65 (8, 1) and g_2' = √5/√65 (8, -1), now with p = 1/4, 3/4.
    gradients, weights = np.array([[2.0, 1.0], [2.0, -1.0]]), np.array([0.25, 0.75])
    found = principal_coefficients(gradients @ gradients.T, 1.0, "keep", weights) @ gradients
    np.testing.assert_allclose(found, np.sqrt(5 / 65) * np.array([8.0, -0.5]), rtol=1e-12)
    # The weighted mean has a component along (0, -1): drop keeps the second's there, and the first becomes (√5, 0).
    found = principal_coefficients(gradients @ gradients.T, 1.0, "drop", weights) @ gradients
    expected = 0.25 * np.array([np.sqrt(5), 0]) + 0.75 * np.sqrt(5 / 65) * np.array([8.0, -1.0])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_authors_rule_by_hand() -> None:
    # Axes (1, 0) and (0, 1) with λ / Σλ = 4/5 and 1/5: g_1' = √5 (4/5, 1/5), g_2' = √5 (4/5, -1/5).
    gradients, uniform = np.array([[2.0, 1.0], [2.0, -1.0]]), np.array([0.5, 0.5])
    gram = gradients @ gradients.T

    def found(share: float, conflict: Conflict, weights: Doubles) -> Doubles:
        return np.asarray(authors_coefficients(gram, share, conflict, weights) @ gradients)

    unequal = np.array([0.25, 0.75])
    np.testing.assert_allclose(found(1.0, "keep", uniform), np.sqrt(5) * np.array([0.8, 0.0]), atol=1e-15)
    np.testing.assert_allclose(found(1.0, "keep", unequal), np.sqrt(5) * np.array([0.8, -0.1]), rtol=1e-12)
    np.testing.assert_allclose(found(0.5, "keep", unequal), np.sqrt(5) * np.array([0.8, 0.0]), atol=1e-15)
    # One for and one against: no majority along (0, 1), whatever their weights.
    np.testing.assert_allclose(found(1.0, "drop", unequal), np.sqrt(5) * np.array([0.8, 0.0]), atol=1e-15)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 7), st.integers(1, 9), st.floats(0.1, 1.0), st.sampled_from(CONFLICTS), st.integers(0, 2**32 - 1))
def test_the_authors_rule_against_an_svd(count: int, size: int, share: float, conflict: Conflict, seed: int) -> None:
    draw = np.random.default_rng(seed)
    gradients, weights = draw.standard_normal((count, size)), draw.dirichlet(np.ones(count))
    _, singular, axes = np.linalg.svd(gradients, full_matrices=False)
    expected = np.zeros(size)
    for axis, eigenvalue in list(zip(axes, singular**2, strict=True))[: axes_kept(count, share)]:
        along = gradients @ axis
        majority = np.sign(np.sign(along).sum())
        for weight, gradient, component in zip(weights, gradients, along, strict=True):
            if conflict == "keep" or np.sign(component) == majority:
                length = eigenvalue / (singular**2).sum() * np.linalg.norm(gradient)
                expected += weight * length * np.sign(component) * axis
    found = authors_coefficients(gradients @ gradients.T, share, conflict, weights) @ gradients
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_authors_rule_is_that_of_fluke() -> None:
    # What ``pcgrad_svd`` of Fluke (github.com/makgyver/fluke, a0bd26a, fluke/algorithms/fedld.py) gives for one tensor
    # of these five changes after the first round, with k_proportion 0.8.
    changes = np.array([[3, -1, 2, 0], [1, 4, -2, 1], [-2, 1, 5, -3], [2, 2, 1, -1], [-1, 0, -4, 2]], np.float64)
    found = authors_coefficients(changes @ changes.T, 0.8) @ changes
    assert found == pytest.approx([0.040252, 0.628401, 0.416549, -0.291521], abs=2e-6)
    # Of a tensor with fewer entries than axes it makes nan, 0/0 on an axis that no client has a part on.
    small = np.array([[1, -2], [-1, 0], [0, 2], [3, 1], [1, 1]], np.float64)
    assert np.isfinite(authors_coefficients(small @ small.T, 0.8) @ small).all()


@settings(deadline=None, max_examples=50)
@given(
    st.integers(1, 8), st.integers(1, 12), st.floats(0.1, 1.0), st.sampled_from(CONFLICTS), st.integers(0, 2**32 - 1)
)
def test_any_gradients_against_an_svd(count: int, size: int, share: float, conflict: Conflict, seed: int) -> None:
    gradients = np.random.default_rng(seed).standard_normal((count, size))
    expected = directly(gradients, share, conflict)
    found = in_gram_space(gradients, share, conflict)
    np.testing.assert_allclose(found, expected.mean(axis=0), rtol=1e-5, atol=1e-7)  # d < n included
    if conflict == "keep":
        np.testing.assert_allclose(np.linalg.norm(expected, axis=1), np.linalg.norm(gradients, axis=1))


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 6), st.sampled_from(CONFLICTS), st.integers(0, 2**32 - 1), st.floats(1e-12, 1e12))
def test_length_of_each_client_is_preserved_and_scale_carries_over(
    count: int, conflict: Conflict, seed: int, scale: float
) -> None:
    gradients = np.random.default_rng(seed).standard_normal((count, 10))
    found = in_gram_space(gradients * scale, 0.8, conflict)
    np.testing.assert_allclose(found, in_gram_space(gradients, 0.8, conflict) * scale, rtol=1e-6)
    # Everyone on one axis: all revised gradients are parallel, so that lengths can be read off their mean.
    one_axis = np.linalg.norm(in_gram_space(np.abs(gradients), 1e-9, conflict))
    np.testing.assert_allclose(one_axis, np.linalg.norm(gradients, axis=1).mean(), rtol=1e-9)


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_one_client_and_identical_clients_change_nothing(conflict: Conflict) -> None:
    np.testing.assert_allclose(principal_coefficients(np.array([[4.0]]), 0.8, conflict), [1.0], rtol=1e-15)
    vectors = [np.array([3.0, -4.0, 0.1], np.float32)] * 5
    found = principal_coefficients(gram_matrix(vectors), 0.8, conflict)
    np.testing.assert_allclose(found, [0.2] * 5, rtol=1e-12)


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_zero_and_opposite_gradients(conflict: Conflict) -> None:
    assert principal_coefficients(np.zeros((3, 3)), 0.8, conflict).tolist() == [0, 0, 0]
    # A client that did not move keeps its length, zero, and its share of the mean.
    with_zero = np.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(in_gram_space(with_zero, 0.8, conflict), [1.5, 2.0], rtol=1e-12)
    opposite = np.array([[3.0, 4.0], [-3.0, -4.0]])
    np.testing.assert_allclose(in_gram_space(opposite, 0.8, conflict), [0.0, 0.0], atol=1e-15)
    # Two against one: drop silences the one whose only component is against the mean.
    outvoted = np.array([[3.0, 4.0], [3.0, 4.0], [-3.0, -4.0]])
    expected = [1.0, 4 / 3] if conflict == "keep" else [2.0, 8 / 3]
    np.testing.assert_allclose(in_gram_space(outvoted, 0.8, conflict), expected, rtol=1e-12)


def test_a_client_off_the_leading_axes_contributes_nothing_not_blown_up_noise() -> None:
    gradients = np.array([[2.0, 1.0, 0.0], [2.0, -1.0, 0.0], [0.0, 0.0, 0.5]])
    found = in_gram_space(gradients, 0.8, "keep")  # K = 2 of 3
    assert found[2] == 0.0
    np.testing.assert_allclose(found[0], in_gram_space(gradients[:2, :2], 1.0, "keep")[0] * 2 / 3, rtol=1e-12)


@pytest.mark.parametrize("conflict", CONFLICTS)
@pytest.mark.parametrize("gram", [np.eye(5), np.eye(6) * 1e-30, np.kron(np.eye(2), np.ones((2, 2)))])
def test_equal_eigenvalues_give_the_same_finite_numbers_every_time(gram: Doubles, conflict: Conflict) -> None:
    found = principal_coefficients(gram, 0.8, conflict)
    assert np.isfinite(found).all() and found.any()
    assert np.array_equal(found, principal_coefficients(gram.copy(), 0.8, conflict))


def test_share_of_one_on_equal_eigenvalues_is_the_plain_mean() -> None:
    # Orthogonal gradients of one length: every axis weighs the same, so nothing turns.
    np.testing.assert_allclose(principal_coefficients(np.eye(5) * 7, 1.0, "keep"), [0.2] * 5, rtol=1e-14)


@pytest.mark.parametrize(
    ("clients", "share", "kept"), [(5, 0.8, 4), (1, 0.8, 1), (3, 0.8, 2), (12, 0.8, 9), (100, 0.29, 29), (4, 1.0, 4)]
)
def test_number_of_axes(clients: int, share: float, kept: int) -> None:
    assert axes_kept(clients, share) == kept


def test_cost_does_not_copy_the_updates() -> None:
    import tracemalloc

    count, size = 50, 200_000
    vectors: list[Any] = list(np.random.default_rng(0).standard_normal((count, size), dtype=np.float32))
    tracemalloc.start()
    weights = principal_weights(vectors, [0, size])
    combine(vectors, [0, size], [weights[0].tolist()])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * count * size * 4
