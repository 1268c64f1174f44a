from __future__ import annotations

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.aggregators.gram import (
    CHUNK,
    combine,
    eigenvalue_shares,
    gram_matrix,
    mean_cosine,
    squared_lengths,
    step_shares,
)


@settings(deadline=None, max_examples=20)
@given(
    st.integers(1, 6), st.sampled_from([1, 5, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7]), st.integers(0, 2**32 - 1)
)
def test_gram_is_the_product_over_any_piece(count: int, size: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    vectors = list(generator.standard_normal((count, size), dtype=np.float32))
    low = int(generator.integers(0, size))
    for start, stop in ((0, None), (low, None), (0, low), (low, low)):
        exact = np.stack(vectors)[:, start:stop].astype(np.float64)
        found = gram_matrix(vectors, start, stop)
        lengths = np.linalg.norm(exact, axis=1)
        assert (np.abs(found - exact @ exact.T) <= 1e-6 * np.outer(lengths, lengths)).all()
        assert np.array_equal(found, found.T)


def test_lengths_are_the_diagonal() -> None:
    vectors = [np.array(values, np.float32) for values in ((3, 4), (-5, 12), (0, 0), (1e30, 0))]
    assert squared_lengths(vectors).tolist() == [25, 169, 0, float(np.float32(1e30)) ** 2]  # beyond float32
    long = list(np.random.default_rng(0).standard_normal((3, 20_000), np.float32))
    np.testing.assert_allclose(squared_lengths(long), np.diag(gram_matrix(long)), rtol=1e-6)


def test_gram_does_not_depend_on_the_number_of_threads() -> None:
    vectors = list(np.random.default_rng(0).standard_normal((40, 3 * CHUNK + 11), dtype=np.float32))
    found = []
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads):
            found.append(gram_matrix(vectors))
    assert np.array_equal(found[0], found[1])


def test_chunks_are_added_up_in_float64() -> None:
    # In float32 a sum of 1e8 swallows a 1: the two vectors would look alike.
    vectors = [np.zeros(CHUNK + 1, np.float32) for _ in range(2)]
    for vector, last in zip(vectors, (1, -1), strict=True):
        vector[0], vector[-1] = 1e4, last
    assert gram_matrix(vectors).tolist() == [[1e8 + 1, 1e8 - 1], [1e8 - 1, 1e8 + 1]]


def test_squares_beyond_float32() -> None:
    vectors = [np.array([1e30, 0, 1], np.float32), np.array([-1e30, 2, 0], np.float32)]
    np.testing.assert_allclose(gram_matrix(vectors), [[1e60, -1e60], [-1e60, 1e60]], rtol=1e-6)


def test_combine_by_hand() -> None:
    first, second = np.array([1, 2, 3, 4], np.float32), np.array([10, 20, 30, 40], np.float32)
    # The middle piece is empty: a tensor of no elements, or no buffers behind the parameters.
    result = combine([first, second], [0, 1, 1, 4], [[1, 1], [7, 7], [2, -1]])
    assert result.tolist() == [11, -16, -24, -32]
    assert first.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(("boundaries", "pieces"), [([0, 3], 1), ([1, 4], 1), ([0, 4], 2)])
def test_combine_refuses_pieces_that_do_not_fit(boundaries: list[int], pieces: int) -> None:
    with pytest.raises(ValueError, match="sets of coefficients"):
        combine([np.zeros(4, np.float32)], boundaries, [[1.0]] * pieces)


def test_mean_cosine_and_eigenvalue_shares_by_hand() -> None:
    # (1, 0), (1, 1), (0, 0): cosines 1/√2, 0, 0; one vector alone has no pair.
    vectors = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert mean_cosine(vectors @ vectors.T) == pytest.approx(1 / np.sqrt(2) / 3)
    assert np.isnan(mean_cosine(np.ones((1, 1))))
    np.testing.assert_allclose(eigenvalue_shares(np.diag([1.0, 4.0])), [0.8, 0.2])
    assert np.isnan(eigenvalue_shares(np.zeros((2, 2)))).all()


def test_step_shares_by_hand() -> None:
    # Pieces (first entry, second entry) of (2, 1) and (2, -1), with coefficients (1, 1) and (1, 2): the step is
    # (4, -1), the first adds (2, 1) to it, the second (2, -2): 7/17 and 10/17.
    first, second = np.full((2, 2), 4.0), np.array([[1.0, -1.0], [-1.0, 1.0]])
    shares = step_shares([first, second], [np.array([1.0, 1.0]), np.array([1.0, 2.0])])
    np.testing.assert_allclose(shares, [7 / 17, 10 / 17])
