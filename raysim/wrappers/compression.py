"""The section ``compression``: the codecs of both ways, and what the server and all clients hold where it compresses.

What a codec does is in its file in ``codecs/``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raysim import seeds
from raysim.config.kind_files import kind_object
from raysim.config.wrappers import Compression
from raysim.method import Context, FlatModel, Message, SharedTensor, Updates, Vector
from raysim.wrappers.codecs._codec import Codec, entries_of
from raysim.wrappers.trained_entries import trained_entries


def upward(compression: Compression) -> Codec | None:
    """The codec of what clients send; None where it is sent as it is."""
    return None if compression.kind == "none" else kind_object("wrappers.codecs", compression.kind, compression)


def downward(compression: Compression) -> Codec | None:
    """The codec of what the server sends; as errors are fed back there, random-k sends entries as they are."""
    fed_back = replace(compression, error_feedback=True)
    return None if compression.down == "none" else kind_object("wrappers.codecs", compression.down, fed_back)


def arrived(codec: Codec, vector: Vector, tensors: Sequence[SharedTensor], seed: int) -> Vector:
    """The vector [d] that the receiver makes of the bytes that a change, finite and not empty, is sent as.

    The codec is given the entries of trained parameters. Statistics come as they are: BatchNorm's variances could
    become negative.

    Args:
        codec: of the section ``compression``.
        vector: the change of all that is shared [d]; 0 at frozen parameters, of which nothing is sent.
        tensors: those that it holds, in order.
        seed: of all that is random.
    """
    shapes, trained = [tensor.shape for tensor in tensors if tensor.trained], trained_entries(tensors)
    received = vector.copy()
    if entries_of(shapes):
        received[trained] = codec.decode(codec.encode(vector[trained], shapes, seed), shapes)
    return received


def wire_bytes(codec: Codec, tensors: Sequence[SharedTensor]) -> int:
    """Bytes on the wire of a change of these tensors: of the codec, and 4 for each entry of a statistic."""
    shapes = [tensor.shape for tensor in tensors if tensor.trained]
    statistics = entries_of([tensor.shape for tensor in tensors if not tensor.parameter])
    return 4 * statistics + (codec.nbytes(shapes) if entries_of(shapes) else 0)


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
    """Bytes of a broadcast on the wire."""

    def message(self, own: Message) -> Message:
        """The method's own message, with what clients hold in the place of its parameters."""
        return replace(own, parameters=self.held, parameter_bytes=self.sent_bytes)

    def with_starts(self, updates: Updates) -> Updates:
        """Updates that say what clients started from: in rounds too w̃, and not the method's own parameters."""
        if updates.bases is not None:
            return updates
        return replace(updates, bases=(self.held,) * len(updates.clients))


def first_broadcast(codec: Codec, method: Any, server: Any, model: FlatModel) -> Broadcast:
    """Before the first round: all clients hold the method's first parameters."""
    return Broadcast(server, method.message(server, 0).parameters, wire_bytes(codec, model.shared_tensors))


def next_broadcast(codec: Codec, method: Any, before: Broadcast, server: Any, context: Context) -> Broadcast:
    """After a server step to the state ``server``."""
    wanted: Vector = method.message(server, 0).parameters
    change = wanted - before.held
    if not (change.size and np.isfinite(change).all()):
        return Broadcast(server, wanted, before.sent_bytes)  # the engine ends a run with NaN
    seed = seeds.number(context.seed, "compression down", context.round)
    return Broadcast(server, before.held + arrived(codec, change, context.tensors, seed), before.sent_bytes)
