"""A sign for each entry, and the mean length of all.

Source: Bernstein et al. 2018, signSGD (arXiv 1802.04434); the scale: Karimireddy et al. 2019, Error feedback fixes
SignSGD (arXiv 1901.09847), section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raysim.method import Shape, Vector
from raysim.wrappers.codecs._codec import Codec, Payload, entries_of


@dataclass(frozen=True)
class Sign(Codec):
    """A bit for an entry."""

    def encode(self, vector: Vector, shapes: Sequence[Shape], seed: int) -> Payload:
        """The mean of |v|, and a bit for each entry: 1 for v ≥ 0."""
        scale = np.array([np.abs(vector).mean(dtype=np.float64)], np.float32)
        return {"scale": scale, "signs": np.packbits(vector >= 0)}

    def decode(self, payload: Payload, shapes: Sequence[Shape]) -> Vector:
        """The mean length with each entry's sign."""
        bits = np.unpackbits(payload["signs"], count=entries_of(shapes)).astype(np.float32)
        return np.asarray((2 * bits - 1) * payload["scale"][0])

    def nbytes(self, shapes: Sequence[Shape]) -> int:
        """Four for the scale, and one for eight signs."""
        return 4 + -(-entries_of(shapes) // 8)


KIND = Sign
