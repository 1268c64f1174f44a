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
_Work = tuple["Future[Any]", Callable[[], Any]]


class RayThread:
    """Thread that does one call after another."""

    def __init__(self) -> None:
        self._work: SimpleQueue[_Work] = SimpleQueue()
        threading.Thread(target=self._run, name="ray", daemon=True).start()

    def submit(self, function: Callable[[], Result]) -> Future[Result]:
        """Queue a call; its result or error is the future's."""
        future: Future[Result] = Future()
        self._work.put((future, function))
        return future

    def _run(self) -> None:
        while True:
            future, function = self._work.get()
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
            del future, function


_thread: RayThread | None = None
given_up = False
"""Whether a thread is blocked, so that this process can only end without its exit handlers."""


def ray_thread() -> RayThread:
    """The thread of this process; a new one after the last was given up."""
    global _thread
    if _thread is None:
        _thread = RayThread()
    return _thread


def give_up() -> None:
    """Abandon the thread, which is blocked for good: the next call gets another."""
    global _thread, given_up
    _thread, given_up = None, True
