"""The one thread that talks to Ray: its calls may block for ever, and then this process must still be able to end.

It lives as long as the process, as what Ray starts would be killed by the system when the thread that started it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")
Calls = SimpleQueue[tuple["Future[Any]", Callable[[], Any]]]

_calls: Calls | None = None
"""What the thread has to do, one call after another; None: there is no thread, or it was given up."""
given_up = False
"""Whether a thread is blocked, so that this process can only end without its exit handlers."""


def submit(function: Callable[[], Result]) -> Future[Result]:
    """Queue a call for the thread of this process; its result or error is the future's."""
    global _calls
    if _calls is None:
        _calls = SimpleQueue()
        threading.Thread(target=_work, args=(_calls,), name="ray", daemon=True).start()
    future: Future[Result] = Future()
    _calls.put((future, function))
    return future


def _work(calls: Calls) -> None:
    while True:
        future, function = calls.get()
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)
        del future, function


def give_up() -> None:
    """Abandon the thread, which is blocked for good: the next call gets another."""
    global _calls, given_up
    _calls, given_up = None, True
