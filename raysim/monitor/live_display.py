"""A live display on a terminal, for the progress of a run and for the cells of a study."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live


class LiveDisplay(ABC):
    """A context manager that draws :meth:`display` again and again where there is a terminal.

    Args:
        stream: where to draw; standard error by default.
        interactive: whether to draw; by default if the stream is a terminal.
    """

    def __init__(self, stream: TextIO | None, interactive: bool | None) -> None:
        self._stream = sys.stderr if stream is None else stream
        if interactive is None:
            interactive = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._interactive = interactive
        self._live: Live | None = None
        """None: nothing is drawn, and plain lines take its place."""

    @abstractmethod
    def display(self) -> Group:
        """The live display in its present state, as a rich renderable."""

    def __enter__(self) -> Self:
        if self._interactive:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self._stream, force_terminal=True)
            self._live = Live(console=console, get_renderable=self.display, refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()  # draws the last state once more and leaves it on the screen
            self._live = None

    def _printed_above(self, text: str) -> bool:
        """Print a line above what is drawn; False where nothing is."""
        if self._live is None:
            return False
        from rich.text import Text  # Text, because brackets in a line are not markup

        self._live.console.print(Text(text), soft_wrap=True)
        return True
