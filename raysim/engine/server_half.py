"""The server's half of a method as the round loop calls it: errors name round and stage, states are checked."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from raysim.errors import RaysimError, code_error
from raysim.exchange.returned_values import what_to_lower
from raysim.storage import pytree
from raysim.storage.tree_template import check_fits

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.method import Message


@contextmanager
def stage(number: int, name: str) -> Iterator[None]:
    """Names round and stage in what the server's half of a method raises."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise code_error(f"round {number}, stage {name}", error, traceback.format_exc()) from error


def first_server(worker: Worker, note: Callable[[str], None]) -> Any:
    """The server's state before the first round; warnings of the method's are noted."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with worker.streams("init_server", 0):
            state = worker.method.init_server(worker.model(0))
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            note(str(warning.message))
    return state


def first_message(worker: Worker, server: Any) -> Message:
    """The message that client 0 would get from this state in the first round."""
    with stage(1, "message"):
        message: Message = worker.method.message(server, 0)
    return message


def check_server(server: Any, first: Any, number: int, method: str, config: RunConfig) -> None:
    """Check a new state of the server where it was made: a later round or a resumed run could not say what is wrong.

    Args:
        first: the state before the first round, whose dataclasses, shapes and types it must have.
        method: the method's class.
        config: the run's.

    Raises:
        RaysimError: it does not fit, or holds nan or inf.
    """
    try:
        check_fits(server, first, "server")
    except (TypeError, ValueError) as error:
        raise RaysimError(
            f"round {number}, stage aggregate: what aggregate returned is no state like the one of init_server: "
            f"{error}. Let {method}.aggregate return the same dataclasses, shapes and types (parameters in float32); "
            "only an axis that has length 0 in init_server may have any length"
        ) from error
    if not pytree.finite(server):  # sums of finite updates may still overflow
        raise RaysimError(
            f"round {number}, stage aggregate: the server's new state holds NaN or infinite values, so the round is "
            f"dropped. Lower {what_to_lower(config)}"
        )
