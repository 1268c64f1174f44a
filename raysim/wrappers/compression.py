"""Codecs of the section ``compression``: an update as the arrays that travel, and back, with their exact bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim.wrappers import low_rank

if TYPE_CHECKING:
    from raysim.config.wrappers import Compression
    from raysim.method import Shape, Vector

SCALED = 4096
"""Entries that share a scale in int8 and int4."""
LEVELS = {"int8": 127, "int4": 7}
Payload = dict[str, NDArray[Any]]


def encoded(compression: Compression, vector: Vector, shapes: Sequence[Shape], seed: int) -> Payload:
    """The arrays that travel of a vector [d], d at least 1, of finite numbers.

    Args:
        shapes: of the tensors that it holds, in order.
        seed: of what is random; the receiver of random-k is told it and draws the same entries.

    random-k sends values times d / k and so has the vector as its mean, but with error feedback, whose sums need a
    contraction, as they are. int8 and int4 round to the grid point above or below such that the mean is the value
    (Alistarh et al. 2017, QSGD, section 3.1): an entry is off by less than its block's max |v| / 127 or / 7. sign sends
    the mean of |v| with a bit each (Bernstein et al. 2018; Karimireddy et al. 2019, section 4). low-rank is
    :func:`raysim.wrappers.low_rank.factors`.
    """
    if compression.kind == "low-rank":
        return low_rank.factors(vector, shapes, compression.rank, seed)
    kind, draws = compression.kind, np.random.default_rng(seed)
    if kind == "top-k":
        kept = entries_kept(compression.kept_share, vector.size)
        places = np.sort(np.argpartition(np.abs(vector), vector.size - kept)[vector.size - kept :]).astype(np.uint32)
        return {"places": places, "values": vector[places]}
    if kind == "random-k":
        kept = entries_kept(compression.kept_share, vector.size)
        factor = 1.0 if compression.error_feedback else vector.size / kept
        return {
            "seed": np.array([seed], np.uint64),
            "values": vector[_random_places(seed, vector.size, kept)] * np.float32(factor),
        }
    if kind == "sign":
        scale = np.array([np.abs(vector).mean(dtype=np.float64)], np.float32)
        return {"scale": scale, "signs": np.packbits(vector >= 0)}
    levels = LEVELS[kind]
    starts = np.arange(0, vector.size, SCALED)
    scales = (np.maximum.reduceat(np.abs(vector), starts) / np.float32(levels)).astype(np.float32)
    each = np.repeat(scales, SCALED)[: vector.size]
    ratios = np.divide(vector, each, out=np.zeros(vector.size), where=each > 0)
    numbers = np.clip(np.floor(ratios + draws.random(vector.size)), -levels, levels).astype(np.int8)
    if kind == "int4":
        padded = np.zeros(2 * -(-vector.size // 2), np.uint8)
        padded[: vector.size] = numbers + 8
        return {"scales": scales, "numbers": padded[::2] << 4 | padded[1::2]}
    return {"scales": scales, "numbers": numbers}


def decoded(compression: Compression, payload: Payload, shapes: Sequence[Shape]) -> Vector:
    """The vector [d] that the receiver makes of the arrays; it knows the tensors' shapes."""
    kind, entries = compression.kind, sum(map(math.prod, shapes))
    if kind == "low-rank":
        return low_rank.product(payload, shapes, compression.rank)
    result: NDArray[np.float32] = np.zeros(entries, np.float32)
    if kind == "top-k":
        result[payload["places"]] = payload["values"]
    elif kind == "random-k":
        result[_random_places(int(payload["seed"][0]), entries, len(payload["values"]))] = payload["values"]
    elif kind == "sign":
        bits = np.unpackbits(payload["signs"], count=entries).astype(np.float32)
        result = (2 * bits - 1) * payload["scale"][0]
    else:
        numbers = payload["numbers"]
        if kind == "int4":
            numbers = np.stack([numbers >> 4, numbers & 15], axis=1).reshape(-1)[:entries].astype(np.int8) - 8
        result = numbers.astype(np.float32) * np.repeat(payload["scales"], SCALED)[:entries]
    return result


def wire_bytes(compression: Compression, shapes: Sequence[Shape]) -> int:
    """What the arrays of a vector take that holds tensors of these shapes."""
    entries = sum(map(math.prod, shapes))
    if entries == 0:
        return 0
    kept, scales = entries_kept(compression.kept_share, entries), 4 * -(-entries // SCALED)
    return {
        "none": 4 * entries,
        "top-k": 8 * kept,
        "random-k": 8 + 4 * kept,
        "int8": scales + entries,
        "int4": scales + -(-entries // 2),
        "sign": 4 + -(-entries // 8),
        "low-rank": 4 * low_rank.numbers_sent(shapes, compression.rank),
    }[compression.kind]


def entries_kept(share: float, entries: int) -> int:
    """k = ⌈share · d⌉, at least 1."""
    return max(1, min(entries, math.ceil(share * entries - 1e-9)))


def _random_places(seed: int, entries: int, kept: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).choice(entries, kept, replace=False, shuffle=False)
