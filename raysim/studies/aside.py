"""A call beside the work of a loop, which need not wait for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self


class Aside:
    """Makes one call at a time, in a thread of its own; a context manager that waits for the last one.

    Args:
        function: is called; its error is raised by the next :meth:`call`, or at the end of the block.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._thread = ThreadPoolExecutor(1, "aside")
        self._called: Future[None] | None = None

    def call(self) -> None:
        """Begin a call, unless the one before is still at work."""
        if self._called is None or self._called.done():
            self._raise()
            self._called = self._thread.submit(self._function)

    def _raise(self) -> None:
        called, self._called = self._called, None
        if called is not None:
            called.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()
        if kind is None:
            self._raise()
