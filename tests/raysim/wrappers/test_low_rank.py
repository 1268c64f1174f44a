"""Low-rank factors: by hand, exact for what has that rank, never longer than what is sent, and their bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.config.wrappers import Compression
from raysim.method import Shape
from raysim.wrappers.compression import decoded, encoded, wire_bytes
from tests.raysim.wrappers.test_compression import received

SHAPES: tuple[Shape, ...] = ((6, 2, 5), (6,), (), (4, 7), (3, 2))
"""A kernel [6, 10] and a matrix [4, 7], whose factors of rank 2 are 32 and 22 numbers, and 13 entries sent whole."""


def test_by_hand() -> None:
    """Rank 1 of M = ((3, 0, 0), (0, 4, 0)): p is M q / ‖M q‖ and p pᵀ M arrives; a vector arrives as it is."""
    first, second, _ = np.random.default_rng(5).standard_normal((3, 1), np.float32)[:, 0].tolist()
    length = ((3 * first) ** 2 + (4 * second) ** 2) ** 0.5
    p = (3 * first / length, 4 * second / length)
    expected = [3 * p[0] * p[0], 4 * p[0] * p[1], 0, 3 * p[1] * p[0], 4 * p[1] * p[1], 0, -7, 8]
    vector = np.array([3, 0, 0, 0, 4, 0, -7, 8], np.float32)
    compression, shapes = Compression("low-rank", rank=1), ((2, 3), (2,))
    assert received(compression, vector, 5, shapes).tolist() == pytest.approx(expected, abs=1e-5)
    assert wire_bytes(compression, shapes) == 4 * (2 + 3 + 2)


@pytest.mark.parametrize("rank", [1, 2])
def test_exact_up_to_its_rank(rank: int) -> None:
    draws = np.random.default_rng(1)
    kernel = draws.standard_normal((6, rank)) @ draws.standard_normal((rank, 10))
    matrix = draws.standard_normal((4, rank)) @ draws.standard_normal((rank, 7))
    small = draws.standard_normal((3, rank)) @ draws.standard_normal((rank, 2))
    parts = (kernel, draws.standard_normal(6), draws.standard_normal(1), matrix, small)
    vector = np.concatenate([part.reshape(-1) for part in parts]).astype(np.float32)
    compression = Compression("low-rank", rank=rank)
    assert np.abs(received(compression, vector, shapes=SHAPES) - vector).max() < 1e-5
    assert received(compression, np.zeros_like(vector), shapes=SHAPES).tolist() == [0] * len(vector)


@settings(deadline=None, max_examples=25)
@given(rank=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_bytes_and_lengths(rank: int, seed: int) -> None:
    """The arrays have the bytes that are counted; what arrives and what is lost are orthogonal."""
    vector = np.random.default_rng(seed).standard_normal(101, np.float32)
    compression = Compression("low-rank", rank=rank)
    payload = encoded(compression, vector, SHAPES, seed)
    assert sum(array.nbytes for array in payload.values()) == wire_bytes(compression, SHAPES) <= vector.nbytes
    arrived = decoded(compression, payload, SHAPES)
    assert abs(arrived @ (vector - arrived)) < 1e-3 and np.linalg.norm(vector - arrived) <= np.linalg.norm(vector)


def test_whole_where_factors_are_larger() -> None:
    assert wire_bytes(Compression("low-rank", rank=2), SHAPES) == 4 * (32 + 22 + 6 + 1 + 6)
    assert wire_bytes(Compression("low-rank", rank=4), SHAPES) == 4 * (60 + 28 + 13)
