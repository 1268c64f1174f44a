"""Digests of what a client task takes and gives, as columns of the clients table (``--proof clients``)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from raysim.exchange.payload import identity
from raysim.storage.state_digest import state_digest

if TYPE_CHECKING:
    from raysim.method import Message, Update

MESSAGE, UPDATE, STATE = "message_digest", "update_digest", "state_digest"
"""Columns: of what the client was sent, of what it returned, and of what it keeps after the task."""


def returned_digests(update: Update, state: Any) -> dict[str, str]:
    """The columns of what a client task gave.

    Args:
        state: what the client keeps after it; None where clients keep nothing.
    """
    found = {UPDATE: state_digest({"delta": update.delta, "extra": dict(update.extra)})}
    return found if state is None else found | {STATE: state_digest(state)}


class MessageDigests:
    """Digests of messages; a value that several messages hold is digested once."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[Any, str]] = {}

    def of(self, message: Message) -> dict[str, str]:
        """The column of a message."""
        parts = {"parameters": message.parameters, **{f"extra {name}": each for name, each in message.extra.items()}}
        found = "\n".join(f"{name} {self._digest(part)}" for name, part in sorted(parts.items()))
        return {MESSAGE: hashlib.sha256(found.encode()).hexdigest()}

    def _digest(self, value: Any) -> str:
        key = identity(value)
        if key not in self._known:  # the value is kept beside: an id is only unique while its object lives
            self._known[key] = (value, state_digest(value))
        return self._known[key][1]
