"""Checks of what a method's functions return and report: updates, states of clients, messages, columns of tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim import columns
from raysim.errors import RaysimError
from raysim.flat_model import FlatModel, as_tensor, finite
from raysim.method import Message, Report, Update
from raysim.storage import pytree

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig

NUMBERS = "Allowed: int, float or a number of numpy's; float(…) makes one, and nan stands for none"


def what_to_lower(config: RunConfig) -> str:
    """The options that make an update large, one of which is to be lowered where numbers overflow."""
    options = ["training.learning_rate"]
    if config.attack.strength not in (None, "paper"):
        options.append("attack.strength")
    if config.privacy.on:
        options.append("privacy.clip")
    return " or ".join(options)


def unusable(update: Any, state: Any, model: FlatModel, judged: Collection[str], config: RunConfig) -> str:
    """Why what ``train`` returned cannot be used; empty if it can.

    Args:
        update: what should be an update.
        state: what the client keeps from now on; None: nothing.
        model: as the task left it.
        judged: columns of the tables that the run's objective makes.
        config: the run's.
    """
    if reason := no_update(update, model):
        return reason
    try:
        check_metrics(update.metrics, judged)
        # Where a client keeps something, that and the model are looked at too: they are no part of the update.
        sound = state is None or (pytree.finite(state, "client state") and finite(model.buffer))
        if finite(as_tensor(update.delta)) and sound and pytree.finite(update.extra, "Update.extra"):
            return ""
    except TypeError as error:  # it names the part that is of no kind to be sent
        return str(error)
    where = [entry.name for entry in model.entries if not finite(model.buffer[entry.start : entry.stop])]
    return (
        f"its update holds NaN or infinite values (first in {where[0] if where else 'what it returns'}); "
        f"nothing of it was aggregated. Lower {what_to_lower(config)}, or look at this client's data"
    )


def no_update(update: Any, model: FlatModel) -> str:
    """Why what ``train`` returned is no update of this model, whatever its numbers; empty if it is one."""
    if not isinstance(update, Update):
        return f"train returned a {type(update).__name__} in the place of its Update"
    if not isinstance(update.delta, np.ndarray):
        return f"Update.delta is a {type(update.delta).__name__}, not a numpy array of float32"
    if update.delta.dtype != np.float32 or update.delta.shape != tuple(model.shared.shape):
        return (
            f"Update.delta is {update.delta.dtype} of shape {update.delta.shape}; expected float32 of shape "
            f"{tuple(model.shared.shape)}, one number for each shared entry (model.change_from gives it)"
        )
    return ""


def check_messages(messages: Mapping[int, Message], round: int) -> None:
    """RaysimError unless what is sent to clients is a vector of float32, and beside it of a kind that can be sent."""
    for client, message in messages.items():
        try:
            if not isinstance(message, Message):
                raise TypeError(f"message returned a {type(message).__name__} in the place of a Message")
            found = message.parameters
            if not isinstance(found, np.ndarray) or found.dtype != np.float32 or found.ndim != 1:
                of = f" of {found.dtype}" if isinstance(found, np.ndarray) else ""
                raise TypeError(f"Message.parameters is {_kind(found)}{of}, not a numpy array of float32 with one axis")
            pytree.check(message.extra, "Message.extra")
        except TypeError as error:
            raise RaysimError(f"client {client}, round {round}, stage message: {error}") from error


def check_metrics(metrics: Any, judged: Collection[str]) -> None:
    """TypeError unless the metrics of an update can be columns of the clients table.

    Args:
        metrics: what should be numbers by name.
        judged: columns that the run's objective makes.
    """
    if not isinstance(metrics, Mapping):
        raise TypeError(f"Update.metrics is a {type(metrics).__name__}, not a dict of numbers by name")
    pytree.check(metrics, "Update.metrics")
    for name, value in metrics.items():
        _check_name("Update.metrics", name, judged)
        if not _is_number(value):
            raise TypeError(f"Update.metrics: {name} is {_kind(value)}, not a number. {NUMBERS}")


def check_report(report: Report, clients: int, round: int, judged: Collection[str]) -> None:
    """RaysimError unless what ``aggregate`` has reported can be columns of the tables.

    Args:
        clients: the number of updates that it was given.
        judged: columns that the run's objective makes.
    """
    try:
        for name, value in report.round_columns.items():
            if isinstance(value, str) and columns.is_text(name) and columns.may_be_reported(name):
                continue  # a wrapper's
            _check_name("report.round", name, judged)
            if not _is_number(value):
                raise TypeError(f"report.round: {name} is {_kind(value)}, not a number. {NUMBERS}")
        for name, values in report.client_columns.items():
            _check_name("report.clients", name, judged)
            found = np.asarray(values)
            if found.shape != (clients,) or found.dtype.kind not in "biuf":
                raise TypeError(
                    f"report.clients: {name} is {_kind(values)}, not an array of {clients} numbers, one for each update"
                )
    except TypeError as error:
        raise RaysimError(f"round {round}, stage aggregate: {error}") from error


def _check_name(where: str, name: Any, judged: Collection[str]) -> None:
    """TypeError unless a method may report numbers under this name."""
    if not isinstance(name, str) or not name.isidentifier():
        raise TypeError(f"{where}: {name!r} is no name of a column. Allowed: letters, digits and _, as own_loss")
    if name in judged and not columns.is_known(name):
        raise TypeError(f"{where}: {name} is also a metric by which the data is judged. Rename one of them")
    if name in judged or columns.is_text(name) or not columns.may_be_reported(name):
        raise TypeError(
            f"{where}: {name} is a column that the run makes itself, which a method may not replace. "
            f"Give it another name, own_{name} say"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
    return f"a value of type {type(value).__name__}{shape}"
