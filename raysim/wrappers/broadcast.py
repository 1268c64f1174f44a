"""Compression on the way from server to clients: what is sent is the change since what all clients hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim import seeds
from raysim.wrappers.compression import decoded, encoded, wire_bytes

if TYPE_CHECKING:
    from raysim.config.wrappers import Compression
    from raysim.flat_model import FlatModel
    from raysim.method import Context, Message, Vector


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
