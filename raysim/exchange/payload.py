"""Payloads of jobs: messages and client states on their way in, each large object stored once, and results back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from raysim.exchange.profile_marks import Mark
from raysim.method import Message, Update, Vector

if TYPE_CHECKING:
    from raysim.exchange.pool_protocol import Pool


@dataclass(frozen=True)
class PackedMessage:
    """A message whose contents are positions in the job's inputs."""

    parameters: int
    extra: Mapping[str, int] = field(default_factory=dict)

    def unpack(self, inputs: Sequence[Any]) -> Message:
        """The message."""
        return Message(inputs[self.parameters], {name: inputs[place] for name, place in self.extra.items()})


@dataclass(frozen=True)
class Packed:
    """Messages and client states of the clients of one job, packed."""

    messages: tuple[PackedMessage, ...]
    states: tuple[int | None, ...]
    """Where each client's state is among the inputs; None before its first task."""
    inputs: tuple[Any, ...]
    """Handles."""

    def unpack(self, inputs: Sequence[Any], group: slice = slice(None)) -> Iterator[tuple[Message, Any]]:
        """Every client's message and state, the latter None before its first task."""
        for message, place in zip(self.messages[group], self.states[group], strict=True):
            yield message.unpack(inputs), None if place is None else inputs[place]


def identity(value: Any) -> object:
    """The key of an object that several messages hold; of a plain tuple or list it is made of the objects in it.

    A method may put a new tuple of the same models into every message.
    """
    return (type(value), *map(id, value)) if type(value) in (tuple, list) else id(value)


class Packer:
    """Stores what the messages of one round hold; an object that several messages hold is stored once."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._handles: dict[object, tuple[Any, Any]] = {}

    def pack(self, clients: Sequence[int], messages: Sequence[Message], states: Mapping[int, Any]) -> Packed:
        """Messages of some clients, and their states (handles, by client)."""
        places: dict[object, int] = {}
        inputs: list[Any] = []

        def place(value: Any) -> int:
            key = identity(value)
            if key not in places:
                places[key] = len(inputs)
                # The value is kept beside its handle: an id is only unique while its object lives.
                if key not in self._handles:
                    self._handles[key] = (value, self._pool.share(value))
                inputs.append(self._handles[key][1])
            return places[key]

        packed: list[PackedMessage] = []
        for message in messages:
            found = PackedMessage(
                place(message.parameters), {key: place(value) for key, value in message.extra.items()}
            )
            # What is one object travels once.
            packed.append(packed[-1] if packed and packed[-1] == found else found)
        state_places: list[int | None] = []
        for client in clients:
            state_places.append(len(inputs) if client in states else None)
            if client in states:
                inputs.append(states[client])
        return Packed(tuple(packed), tuple(state_places), tuple(inputs))


@dataclass(frozen=True)
class Failure:
    """A client task that gave no usable update: which client it was, in which stage of its task, and why."""

    client: int
    stage: str
    reason: str
    traceback: str = ""


@dataclass(frozen=True)
class Returned:
    """The parts of a chunk's results that travel beside metrics; all others are outputs, which stay on the worker."""

    sums: bool
    """Σ m_i Δ_i over its clients in place of every Δ_i, among the results."""
    sums_stay: bool = False
    """That sum as the last output instead."""
    states: bool = False
    """Every client's new state, as an output."""
    models: bool = False
    """Every client's whole trained model, as an output (None of a client that failed)."""
    digests: bool = False
    """Digests of every client's update and new state, among the results."""

    def outputs(self, clients: int) -> int:
        """How many outputs a chunk of this many clients has: states, then models, then the sum."""
        return clients * (self.states + self.models) + self.sums_stay


@dataclass(frozen=True)
class TrainedChunk:
    """The updates (or failures) of a chunk in client order, their sums if the method asks for no more, and seconds."""

    updates: tuple[Update | Failure, ...]
    sums: tuple[tuple[Vector | None, int], ...]
    """Σ m_i Δ_i [d] over each of a few nodes of the tree over all clients (:meth:`PairwiseSum.nodes`), unless they are
    an output."""
    seconds: tuple[float, ...]
    marks: tuple[Mark, ...] = ()
    """Where its time went, if that is asked for."""
    digests: tuple[Mapping[str, str], ...] = ()
    """Digests of every client's update and new state, by column, if they are asked for; of clients whose single
    steps were merged that of the sum of their group. Empty of one that failed."""
