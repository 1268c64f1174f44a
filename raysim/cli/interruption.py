"""Ctrl-C, SIGTERM and SIGHUP: what ends a run from outside, and how the run learns of it."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Never

from raysim.engine.observer import Silent

SIGNALS: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; SLURM's time limit, ``docker stop``, ``kill`` and ``ray job stop``; a terminal that is closed."""


class Interruption(Silent):
    """Turns a signal into a request to stop; a context manager, and an observer that learns when rounds begin.

    Before the first round there is nothing to save, so the signal raises KeyboardInterrupt at once. From then on the
    first signal only asks to stop (:meth:`asked`), and a second one raises. Libraries may make another error of that
    exception, or lose it, and then the run stops before its first round; :meth:`raised` tells.
    """

    def __init__(self) -> None:
        self.number: int = signal.SIGINT
        """The signal that came first."""
        self._asked = self._raised = False
        self._rounds = False
        self._before: dict[int, object] = {}
        self._process = os.getpid()
        self._tell_lost = sys.unraisablehook

    @property
    def exit_code(self) -> int:
        """Exit code that a shell reports of a process that such a signal has ended: 130, 143 or 129."""
        return 128 + self.number

    def asked(self) -> bool:
        """Whether the run is to stop."""
        return self._asked

    def raised(self) -> bool:
        """Whether KeyboardInterrupt was raised, of which any error that comes after may be a consequence."""
        return self._raised

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        """From here on there is something to save."""
        self._rounds = True

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """A first signal within raises at the end, when what was begun is known and can be taken back."""
        self._rounds = True
        try:
            yield
        finally:
            self._rounds = False
        if self._asked:
            self._raise()

    def rounds_ended(self) -> None:
        """All is saved: a signal ends whatever comes now at once."""
        self._rounds = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a child that Ray has forked and that is not yet a program of its own
            os._exit(128 + number)
        if number == signal.SIGHUP:
            _silence_closed_terminal()
        first = not self._asked
        if first:
            self._asked, self.number = True, number
        if not (first and self._rounds):
            self._raise()

    def _raise(self) -> Never:
        self._raised = True
        raise KeyboardInterrupt

    def _lost(self, lost: sys.UnraisableHookArgs) -> None:
        """Say nothing of a KeyboardInterrupt that was raised in a callback, as imports have, where it ends nothing."""
        if lost.exc_type is not KeyboardInterrupt:
            self._tell_lost(lost)

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if number == signal.SIGHUP and before == signal.SIG_IGN:
                    continue  # as nohup asks
                self._before[number] = before
                signal.signal(number, self._handle)
            self._tell_lost, sys.unraisablehook = sys.unraisablehook, self._lost
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]
        if self._before:
            sys.unraisablehook = self._tell_lost
        self._before.clear()
        # Python remembers a KeyboardInterrupt that left exec() of a text (imports that make dataclasses have such) and
        # ends `python -m` by SIGINT, although it was caught and an exit code is given; the next exec() clears that.
        exec("")


def _silence_closed_terminal() -> None:
    """Sends what would be written to a terminal or a reader that is gone to nowhere, where it raises no error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            number = stream.fileno()
        except (OSError, ValueError):  # not a file, as in a notebook
            continue
        watch = select.poll()
        watch.register(number, 0)
        if watch.poll(0):  # only that the other end is gone is reported for an empty mask
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)
