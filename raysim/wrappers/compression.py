"""The section ``compression``: an update as the arrays that travel, and back, and changes on the way to the clients."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim import seeds
from raysim.aggregators.gram import one_blas_thread
from raysim.config.wrappers import Compression
from raysim.method import Context, FlatModel, Message, Shape, Vector

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
    :func:`factors`.
    """
    if compression.kind == "low-rank":
        return factors(vector, shapes, compression.rank, seed)
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
        return product(payload, shapes, compression.rank)
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
    kept, scales, rank = entries_kept(compression.kept_share, entries), 4 * -(-entries // SCALED), compression.rank
    pieces = _matrices(shapes, rank)
    return {
        "none": 4 * entries,
        "top-k": 8 * kept,
        "random-k": 8 + 4 * kept,
        "int8": scales + entries,
        "int4": scales + -(-entries // 2),
        "sign": 4 + -(-entries // 8),
        "low-rank": 4 * sum(rank * (m + n) if n else piece.stop - piece.start for piece, m, n in pieces),
    }[compression.kind]


def entries_kept(share: float, entries: int) -> int:
    """k = ⌈share · d⌉, at least 1."""
    return max(1, min(entries, math.ceil(share * entries - 1e-9)))


def _random_places(seed: int, entries: int, kept: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).choice(entries, kept, replace=False, shuffle=False)


def factors(vector: Vector, shapes: Sequence[Shape], rank: int, seed: int) -> Payload:
    """What travels of a vector [d]: P and Q of every matrix that they are smaller than, all other entries as they are.

    Source: Vogels et al. 2019, PowerSGD (arXiv 1905.13727), Algorithm 1. A tensor counts as the matrix M of its first
    axis and all others; P = M Q from a normal Q [columns, rank] has its columns made orthonormal, then Q = Mᵀ P. What
    arrives, P Qᵀ = P Pᵀ M, is a projection of M: never longer than M, and M itself if its rank is ``rank`` or less.

    Two departures: every client has factors of its own (the paper's workers average P before it is made orthonormal),
    and Q is drawn anew each time, so that nothing is kept.

    Args:
        vector: finite numbers.
        shapes: of the tensors that it holds, in order.
        rank: r, the number of columns of P and Q.
        seed: of the first Q.
    """
    draws = np.random.default_rng(seed)
    payload: Payload = {}
    with one_blas_thread():
        for number, (piece, rows, columns) in enumerate(_matrices(shapes, rank)):
            if not columns:
                payload[f"whole {number}"] = vector[piece]
                continue
            matrix = vector[piece].reshape(rows, columns)
            basis, _ = np.linalg.qr(matrix @ draws.standard_normal((columns, rank), np.float32))
            payload[f"left {number}"] = np.ascontiguousarray(basis)
            payload[f"right {number}"] = matrix.T @ basis
    return payload


def product(payload: Payload, shapes: Sequence[Shape], rank: int) -> Vector:
    """The vector [d] that the receiver makes of :func:`factors`."""
    result: Vector = np.empty(sum(map(math.prod, shapes)), np.float32)
    with one_blas_thread():
        for number, (piece, _, columns) in enumerate(_matrices(shapes, rank)):
            if columns:
                result[piece] = (payload[f"left {number}"] @ payload[f"right {number}"].T).reshape(-1)
            else:
                result[piece] = payload[f"whole {number}"]
    return result


def _matrices(shapes: Sequence[Shape], rank: int) -> Iterator[tuple[slice, int, int]]:
    """Every tensor's place, rows and columns; no columns where it is sent whole, as its factors are not smaller."""
    start = 0
    for shape in shapes:
        size = math.prod(shape)
        rows = shape[0] if shape else 1
        columns = size // rows if rows else 0
        yield slice(start, start + size), rows, columns if rank * (rows + columns) < size else 0
        start += size


@dataclass(frozen=True)
class Broadcast:
    """A server's state where what it sends is compressed.

    Source: Gruntkowska et al. 2023, EF21-P and friends (arXiv 2209.15218), Algorithm 1: the server keeps its model w,
    all clients hold w̃, and the server sends C(w − w̃), which all add to w̃. What was lost of one change is part of the
    next: that is the feedback of errors. Every client hears every broadcast, also in rounds that it does not train in.
    """

    method: Any
    """The method's own state, with w in it."""
    held: Vector
    """w̃ [d]."""
    sent_bytes: int
    """What a broadcast takes on the wire."""

    def message(self, own: Message) -> Message:
        """The method's own message, with what clients hold in the place of its parameters."""
        return replace(own, parameters=self.held, parameter_bytes=self.sent_bytes)


def first_broadcast(compression: Compression, method: Any, server: Any, model: FlatModel) -> Broadcast:
    """Before the first round: all clients hold the method's first parameters."""
    size = wire_bytes(downward(compression), model.shared_shapes)
    return Broadcast(server, method.message(server, 0).parameters, size)


def next_broadcast(
    compression: Compression, method: Any, before: Broadcast, server: Any, context: Context
) -> Broadcast:
    """After a server step to the state ``server``."""
    wanted: Vector = method.message(server, 0).parameters
    change = wanted - before.held
    if not (change.size and np.isfinite(change).all()):
        return Broadcast(server, wanted, before.sent_bytes)  # the engine ends a run with NaN
    compression, seed = downward(compression), seeds.number(context.seed, "compression down", context.round)
    received = decoded(compression, encoded(compression, change, context.shapes, seed), context.shapes)
    return Broadcast(server, before.held + received, before.sent_bytes)


def downward(compression: Compression) -> Compression:
    """The codec of the way down; as errors are fed back, random-k sends entries as they are."""
    return replace(compression, kind=compression.down, error_feedback=True)
