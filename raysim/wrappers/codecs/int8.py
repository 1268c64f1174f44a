"""Whole numbers from −127 to 127 by stochastic rounding, a byte each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raysim.method import Shape, Vector
from raysim.wrappers.codecs._codec import Codec, Payload, entries_of
from raysim.wrappers.codecs._stochastic_rounding import restored, rounded, scale_bytes


@dataclass(frozen=True)
class Int8(Codec):
    """A byte for an entry."""

    def encode(self, vector: Vector, shapes: Sequence[Shape], seed: int) -> Payload:
        """Scales and numbers."""
        scales, numbers = rounded(vector, 127, seed)
        return {"scales": scales, "numbers": numbers}

    def decode(self, payload: Payload, shapes: Sequence[Shape]) -> Vector:
        """Numbers times scales."""
        return restored(payload["scales"], payload["numbers"])

    def nbytes(self, shapes: Sequence[Shape]) -> int:
        """Bytes of the scales, and one byte for each number."""
        entries = entries_of(shapes)
        return scale_bytes(entries) + entries


KIND = Int8
