"""The contract of a codec: a vector as the arrays that travel, the vector that is made of them, and their bytes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from raysim.method import Shape, Vector
from raysim.rounding import rounded_up

Payload = dict[str, NDArray[Any]]
"""The arrays that travel, by name."""


class Codec(ABC):
    """One kind of compression; its fields are the options of the section ``compression`` that it reads."""

    @abstractmethod
    def encode(self, vector: Vector, shapes: Sequence[Shape], seed: int) -> Payload:
        """The arrays that travel.

        Args:
            vector: finite numbers [d], d at least 1.
            shapes: of the tensors that it holds, in order; both sides know them.
            seed: of all that is random.
        """

    @abstractmethod
    def decode(self, payload: Payload, shapes: Sequence[Shape]) -> Vector:
        """The vector [d], float32, that the receiver makes of the arrays."""

    @abstractmethod
    def nbytes(self, shapes: Sequence[Shape]) -> int:
        """Bytes of the arrays of a vector that holds tensors of these shapes, at least one entry in all."""


def entries_of(shapes: Sequence[Shape]) -> int:
    """Number of entries d of a vector that holds tensors of these shapes."""
    return sum(map(math.prod, shapes))


def entries_kept(share: float, entries: int) -> int:
    """k = ⌈share · d⌉, at least 1."""
    return max(1, min(entries, rounded_up(share, entries)))
