"""Cells of a study computed one after another in this process, or side by side in processes of their own."""

from __future__ import annotations

import multiprocessing
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, cast

from raysim.schedule import planned_intervals
from raysim.storage.claims import SECONDS, claimed
from raysim.studies import cell_run
from raysim.studies.aside import Aside
from raysim.studies.board import Board
from raysim.studies.cell_process import work
from raysim.studies.cell_report import News, Reporter
from raysim.studies.cell_run import End
from raysim.studies.cells_left import CellsLeft
from raysim.studies.study_file import Cell

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

LISTEN = 0.2
"""Seconds between two looks whether the user wants to stop."""
END_SECONDS = 10.0
"""Patience with a process that has told its end."""
_CONTEXT = multiprocessing.get_context("forkserver")


def one_after_another(
    left: CellsLeft, board: Board, asked: Callable[[], bool], finished: Callable[[], None]
) -> dict[str, str]:
    """Compute the cells in this process; name → reason of each that failed.

    Args:
        asked: whether to stop.
        finished: is called after every cell.
    """
    failed, told = dict[str, str](), False
    while left and not asked():
        cell = left.take()
        if cell is None:
            told = _waits(left, board, told)
            continue
        begun = time.monotonic()
        board.begins(cell)
        reporter = Reporter(len(planned_intervals(cell.config())), partial(board.hears, cell))
        end = cell_run.attempt(cell, left.failed_at(cell), reporter, asked)
        _settle(cell, end, time.monotonic() - begun, left, failed)
        board.ends(cell, end)
        finished()
    return failed | _failed_elsewhere(left)


@dataclass
class Place:
    """A cell under way."""

    cell: Cell
    begun: float = field(default_factory=time.monotonic)


class SideBySide(ABC):
    """Computes several cells at a time."""

    def __init__(self, left: CellsLeft, board: Board) -> None:
        self._left, self._board = left, board
        self._failed: dict[str, str] = {}
        self._stopping = False

    def run(self, asked: Callable[[], bool], finished: Callable[[], None]) -> dict[str, str]:
        """Compute the cells; name → reason of each that failed. Arguments as of :func:`one_after_another`.

        ``finished`` is called in a thread of its own once further cells are under way: no process waits for it.
        """
        told = ended = False
        with ExitStack() as stack:
            aside = stack.enter_context(Aside(finished))
            stack.callback(self._end)
            while self._places() or (self._left and not self._stopping):
                if asked() and not self._stopping:
                    self._stopping = True
                    self._stop()
                while not self._stopping and (cell := self._left.take(self._has_room)) is not None:
                    self._board.begins(cell)
                    self._begin(cell)
                if ended:  # others are under way in the place of those that ended
                    aside.call()
                ended = False
                if self._places():
                    ended = self._listen()
                elif not self._stopping:
                    told = _waits(self._left, self._board, told)
        return self._failed | _failed_elsewhere(self._left)

    def _ended(self, place: Place, end: End) -> None:
        """Note the end of an attempt, and show it."""
        _settle(place.cell, end, time.monotonic() - place.begun, self._left, self._failed)
        self._board.ends(place.cell, end)

    def _given_up(self, cell: Cell, reason: str) -> End:
        """Keep the failure of a cell that could not be done, unless the study stops or another process has the cell."""
        if self._stopping:
            return End("stopped")
        with claimed(cell.path) as mine:
            if mine and not cell.path.exists():
                cell_run.keep_failure(cell, reason)
        return End("failed", reason)

    @abstractmethod
    def _places(self) -> Sequence[Place]:
        """The cells under way."""

    @abstractmethod
    def _has_room(self, cell: Cell) -> bool:
        """Whether the cell can be begun now."""

    @abstractmethod
    def _begin(self, cell: Cell) -> None:
        """Begin it."""

    @abstractmethod
    def _listen(self) -> bool:
        """Hear of the cells under way for a moment; whether one of them ended."""

    @abstractmethod
    def _stop(self) -> None:
        """Ask the cells under way to stop after their present rounds, which are saved."""

    @abstractmethod
    def _end(self) -> None:
        """Let go of what is still under way."""


def load_ahead() -> None:
    """Start the server from which processes are forked, which loads their packages while this process goes on."""
    _CONTEXT.set_forkserver_preload(["raysim.studies.loaded"])
    forkserver.ensure_running()


@dataclass
class _Process:
    """A process that computes cells, one at a time."""

    process: ForkServerProcess
    place: Place | None = None
    """Its cell under way; None between two."""
    round: int = 0
    """The last of this cell of which it told."""
    silent: bool = False
    """Whether it was kept from an earlier cell and has told nothing of this one: it may have died between the two."""


class InProcesses(SideBySide):
    """Computes cells in up to ``workers`` processes at a time, each kept for many cells.

    A process that dies without a word (killed, or a crash in a library) is replaced by one that goes on from the cell's
    last checkpoint; if that dies too before a further round, the cell has failed. The death of a process that was kept,
    before it told of its next cell, is none of that cell's.
    """

    def __init__(self, left: CellsLeft, workers: int, board: Board) -> None:
        super().__init__(left, board)
        self._workers = workers
        load_ahead()
        self._processes: dict[Connection, _Process] = {}
        self._died_in: dict[str, int] = {}
        """Name of a cell → the round after which its process died."""

    def _places(self) -> list[Place]:
        return [own.place for own in self._processes.values() if own.place is not None]

    def _has_room(self, cell: Cell) -> bool:
        return len(self._places()) < self._workers

    def _begin(self, cell: Cell) -> None:
        order = (cell, self._left.failed_at(cell))
        for connection in [other for other, own in self._processes.items() if own.place is None]:
            try:
                connection.send(order)
            except OSError:  # it died between two cells
                self._lose(connection)
            else:
                self._processes[connection] = _Process(self._processes[connection].process, Place(cell), silent=True)
                return
        mine, its = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=work, args=(its,), name=f"cells of {cell.path.parent.name}")
        process.start()
        its.close()  # so that its death shows as the connection's end
        self._processes[mine] = _Process(process, Place(cell))
        with suppress(OSError):  # it died in its start, which :meth:`_listen` will see
            mine.send(order)

    def _stop(self) -> None:
        for own in self._processes.values():
            own.process.terminate()

    def _end(self) -> None:
        for own in self._processes.values():
            own.process.kill()
            own.process.join(END_SECONDS)

    def _lose(self, connection: Connection) -> None:
        """Forget a process that has ended."""
        self._processes.pop(connection).process.join(END_SECONDS)
        connection.close()

    def _listen(self) -> bool:
        ended = False
        for connection in cast("list[Connection]", wait([*self._processes], LISTEN)):
            own = self._processes[connection]
            place = own.place
            try:
                message = connection.recv()
            except (EOFError, OSError):
                message = None
                self._lose(connection)
            if place is None:
                continue  # it ended between two cells
            if isinstance(message, News):
                own.round, own.silent = max(own.round, message.round), False
                self._board.hears(place.cell, message)
                continue
            own.place = None
            self._ended(place, message or self._death(own, place.cell))
            ended = True
        return ended

    def _death(self, own: _Process, cell: Cell) -> End:
        """Decide what follows the death of a cell's process; one that was asked to stop may not have got so far."""
        if self._stopping:
            return End("stopped")
        code = own.process.exitcode
        if own.silent:
            self._board.says(f"{cell.name}: its process {_words(code)} before it began; another one computes it")
            return End("died")
        if own.round > self._died_in.get(cell.name, -1):
            self._died_in[cell.name] = own.round
            self._board.says(f"{cell.name}: its process {_words(code)}; it goes on from its last checkpoint")
            return End("died")
        reason = f"its process {_words(code)}, and again without a further round"
        return self._given_up(cell, reason)


def _settle(cell: Cell, end: End, seconds: float, left: CellsLeft, failed: dict[str, str]) -> None:
    """Take note of the end of an attempt."""
    if end.kind == "finished":
        left.took(cell, seconds)
    elif end.kind == "failed":
        failed[cell.name] = end.reason
    elif end.kind in ("elsewhere", "died", "stopped"):
        left.put_back(cell)


def _failed_elsewhere(left: CellsLeft) -> dict[str, str]:
    return {cell.name: "it failed in another process" for cell in left.failed_elsewhere}


def _waits(left: CellsLeft, board: Board, told: bool) -> bool:
    """Wait a little for the process that is at the next cell, if there is one; whether that was said."""
    if left and not told:
        board.says(left.elsewhere())
    if left:
        time.sleep(SECONDS)
    return bool(left)


def _words(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
