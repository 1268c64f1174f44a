"""k = ⌈kept_share · d⌉ random entries of a vector, and the seed that says which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raysim.method import Shape, Vector
from raysim.wrappers.codecs._codec import Codec, Payload, entries_kept, entries_of


@dataclass(frozen=True)
class RandomK(Codec):
    """Values times d / k, so that the mean is the vector; as they are where errors are fed back.

    The sums of error feedback need a contraction, which values times d / k are not.
    """

    kept_share: float
    error_feedback: bool = False

    def encode(self, vector: Vector, shapes: Sequence[Shape], seed: int) -> Payload:
        """The seed, from which the receiver draws the same places, and the values there."""
        kept = entries_kept(self.kept_share, vector.size)
        factor = 1.0 if self.error_feedback else vector.size / kept
        places = _random_places(seed, vector.size, kept)
        return {"seed": np.array([seed], np.uint64), "values": vector[places] * np.float32(factor)}

    def decode(self, payload: Payload, shapes: Sequence[Shape]) -> Vector:
        """Zero everywhere else."""
        entries, values = entries_of(shapes), payload["values"]
        result: NDArray[np.float32] = np.zeros(entries, np.float32)
        result[_random_places(int(payload["seed"][0]), entries, len(values))] = values
        return result

    def nbytes(self, shapes: Sequence[Shape]) -> int:
        """Eight bytes for the seed and four for a value."""
        return 8 + 4 * entries_kept(self.kept_share, entries_of(shapes))


def _random_places(seed: int, entries: int, kept: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).choice(entries, kept, replace=False, shuffle=False)


KIND = RandomK
