"""The k = ⌈kept_share · d⌉ largest entries of a vector, each with its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raysim.method import Shape, Vector
from raysim.wrappers.codecs._codec import Codec, Payload, entries_kept, entries_of


@dataclass(frozen=True)
class TopK(Codec):
    """The largest entries as they are."""

    kept_share: float

    def encode(self, vector: Vector, shapes: Sequence[Shape], seed: int) -> Payload:
        """The places, ascending, and the values there."""
        kept = entries_kept(self.kept_share, vector.size)
        places = np.sort(np.argpartition(np.abs(vector), vector.size - kept)[vector.size - kept :]).astype(np.uint32)
        return {"places": places, "values": vector[places]}

    def decode(self, payload: Payload, shapes: Sequence[Shape]) -> Vector:
        """Zero everywhere else."""
        result: NDArray[np.float32] = np.zeros(entries_of(shapes), np.float32)
        result[payload["places"]] = payload["values"]
        return result

    def nbytes(self, shapes: Sequence[Shape]) -> int:
        """Four bytes for a place and four for a value."""
        return 8 * entries_kept(self.kept_share, entries_of(shapes))


KIND = TopK
