from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.aggregators.gram import Doubles
from raysim.aggregators.harmonize import harmonized_coefficients


def pairwise(gradients: Doubles) -> Doubles:
    """The definition, on vectors of length d."""
    originals, result = gradients, gradients.copy()
    for i in range(len(gradients)):
        for j in range(i + 1, len(gradients)):
            if originals[i] @ originals[j] < 0:
                result[i] -= (result[i] @ originals[j]) / (originals[j] @ originals[j]) * originals[j]
                result[j] -= (result[j] @ originals[i]) / (originals[i] @ originals[i]) * originals[i]
    return result


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.integers(1, 10), st.integers(0, 2**32 - 1))
def test_gram_space_equals_the_pairwise_definition(count: int, size: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    gradients = generator.standard_normal((count, size))
    weights = generator.dirichlet(np.ones(count))
    found = harmonized_coefficients(gradients @ gradients.T, weights) @ gradients
    np.testing.assert_allclose(found, weights @ pairwise(gradients), rtol=1e-9, atol=1e-9)


def test_a_conflicting_pair_by_hand() -> None:
    gradients = np.array([[1.0, 0.0], [-1.0, 1.0]])
    # g_1 + ½ g̃_2 = (½, ½), g_2 + g̃_1 = (0, 1): each at a right angle to the other's original.
    found = harmonized_coefficients(gradients @ gradients.T, np.array([0.5, 0.5])) @ gradients
    np.testing.assert_allclose(found, [0.25, 0.75], rtol=1e-15)


def test_it_is_the_present_component_along_the_original() -> None:
    # g_0 conflicts with both others, which are neither parallel nor orthogonal: after the first removal its component
    # along the third differs from what its original had.
    gradients = np.array([[1.0, 0.0], [-1.0, 1.0], [-1.0, 0.5]])
    first = np.array([0.5, 0.5])  # at a right angle to g̃_1
    second = first - (first @ gradients[2]) / 1.25 * gradients[2]
    np.testing.assert_allclose(pairwise(gradients)[0], second)
    only_first = harmonized_coefficients(gradients @ gradients.T, np.array([1.0, 0.0, 0.0])) @ gradients
    np.testing.assert_allclose(only_first, second, rtol=1e-14)


@pytest.mark.parametrize(
    "gradients",
    [
        [[1.0, 2.0], [2.0, 1.0]],  # no conflict
        [[1.0, 0.0], [0.0, 1.0]],  # orthogonal
        [[1.0, 2.0], [1.0, 2.0]],  # identical
        [[0.0, 0.0], [1.0, -1.0]],  # a client that did not move
        [[1.0, 2.0]],
    ],
)
def test_without_a_conflict_the_weights_stay(gradients: list[list[float]]) -> None:
    rows = np.array(gradients)
    weights = np.arange(1.0, len(rows) + 1)
    assert harmonized_coefficients(rows @ rows.T, weights).tolist() == weights.tolist()
