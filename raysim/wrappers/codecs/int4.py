"""Whole numbers from −7 to 7 by stochastic rounding, two in a byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raysim.method import Shape, Vector
from raysim.wrappers.codecs._codec import Codec, Payload, entries_of
from raysim.wrappers.codecs._stochastic_rounding import restored, rounded, scale_bytes


@dataclass(frozen=True)
class Int4(Codec):
    """Half a byte for an entry, 8 more than its number."""

    def encode(self, vector: Vector, shapes: Sequence[Shape], seed: int) -> Payload:
        """Scales and numbers; an odd last number has a byte of its own."""
        scales, numbers = rounded(vector, 7, seed)
        padded = np.zeros(2 * -(-vector.size // 2), np.uint8)
        padded[: vector.size] = numbers + 8
        return {"scales": scales, "numbers": padded[::2] << 4 | padded[1::2]}

    def decode(self, payload: Payload, shapes: Sequence[Shape]) -> Vector:
        """Numbers times scales."""
        pairs = np.stack([payload["numbers"] >> 4, payload["numbers"] & 15], axis=1).reshape(-1)
        return restored(payload["scales"], pairs[: entries_of(shapes)].astype(np.int8) - 8)

    def nbytes(self, shapes: Sequence[Shape]) -> int:
        """Bytes of the scales, and one byte for two numbers."""
        entries = entries_of(shapes)
        return scale_bytes(entries) + -(-entries // 2)


KIND = Int4
