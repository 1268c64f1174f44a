"""Checks of what a method's functions return: updates, states of clients and messages that can be sent and summed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raysim.errors import RaysimError
from raysim.flat_model import FlatModel, as_tensor, finite
from raysim.method import Message, Update
from raysim.storage import pytree


def unusable(update: Any, state: Any, model: FlatModel) -> str:
    """Why what ``train`` returned cannot be used; empty if it can.

    Args:
        update: what should be an update.
        state: what the client keeps from now on; None: nothing.
        model: as the task left it.
    """
    if not isinstance(update, Update):
        return f"train returned a {type(update).__name__} in the place of its Update"
    if not isinstance(update.delta, np.ndarray):
        return f"Update.delta is a {type(update.delta).__name__}, not a numpy array of float32"
    try:
        pytree.check(update.metrics, "Update.metrics")
        # Where a client keeps something, that and the model are looked at too: they are no part of the update.
        sound = state is None or (pytree.finite(state, "client state") and finite(model.buffer))
        if finite(as_tensor(update.delta)) and sound and pytree.finite(update.extra, "Update.extra"):
            return ""
    except TypeError as error:  # it names the part that is of no kind to be sent
        return str(error)
    where = [entry.name for entry in model.entries if not finite(model.buffer[entry.start : entry.stop])]
    return (
        f"its update holds NaN or infinite values (first in {where[0] if where else 'what it returns'}); "
        "nothing of it was aggregated. Lower training.learning_rate, or look at this client's data"
    )


def check_messages(messages: Mapping[int, Message], round: int) -> None:
    """RaysimError unless all that is sent to clients beside the parameters is of a kind that can be sent."""
    for client, message in messages.items():
        try:
            pytree.check(message.extra, "Message.extra")
        except TypeError as error:
            raise RaysimError(f"client {client}, round {round}, stage message: {error}") from error
