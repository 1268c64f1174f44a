"""Coalitions computed side by side, in processes of their own that share one store of client tasks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import wait
from multiprocessing.managers import SyncManager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from raysim.contribution.task_store import BYTES, SharedTaskStore
from raysim.errors import RaysimError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from raysim.contribution.task_store import Store

Coalition = frozenset[int]
Utility = Callable[[Coalition], float]
Make = Callable[["Store"], Utility]
END_SECONDS = 10.0
"""Patience with a process that was killed."""


class Workers:
    """Processes that compute utilities, until the context ends.

    Args:
        count: how many.
        make: makes what computes them from a store of client tasks, in a process with ``threads`` threads.
    """

    def __init__(self, count: int, make: Make, threads: int) -> None:
        self._count, self._order = count, (make, threads)
        self.computed = 0
        """Client tasks that were computed in them."""
        self.taken = 0
        """Client tasks that were taken from their store instead."""
        self._connections: list[Connection] = []

    def __enter__(self) -> Workers:
        self._open = ExitStack()
        locks = self._open.enter_context(tempfile.TemporaryDirectory(prefix="raysim-coalitions-"))
        context = multiprocessing.get_context("spawn")
        manager = SyncManager(ctx=context)
        manager.start(_end_with_parent)
        self._open.enter_context(manager)
        self._held = held = manager.dict()  # ends with its last proxy, and workers have none yet
        for _ in range(self._count):
            mine, its = context.Pipe()
            arguments = (its, *self._order, held, Path(locks), BYTES // self._count)
            process = context.Process(target=_work, args=arguments, name="coalitions", daemon=True)
            process.start()
            its.close()  # so that its death shows as the connection's end
            self._open.callback(process.join, END_SECONDS)
            self._open.callback(process.kill)
            self._connections.append(mine)
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()
        self._open.close()

    def utilities(self, coalitions: Sequence[Coalition]) -> Iterator[float]:
        """The utility of each coalition, in their order; later ones are computed meanwhile.

        Raises:
            RaysimError: a run failed, or a process died.
        """
        found: dict[int, float] = {}
        waiting, idle = list(enumerate(coalitions)), list(self._connections)
        under_way: dict[Connection, int] = {}
        for number in range(len(coalitions)):
            while number not in found:
                while waiting and idle:
                    place, coalition = waiting.pop(0)
                    with suppress(OSError):  # it died, which its answer says
                        idle[-1].send(coalition)
                    under_way[idle.pop()] = place
                for connection in cast("list[Connection]", wait([*under_way])):
                    found[under_way.pop(connection)] = self._answer(connection)
                    idle.append(connection)
            yield found.pop(number)

    def _answer(self, connection: Connection) -> float:
        try:
            utility, computed, taken = connection.recv()
        except (EOFError, OSError) as error:
            raise RaysimError(
                "a process that computed coalitions died (out of memory?). Give fewer --workers; the same command goes "
                "on"
            ) from error
        if isinstance(utility, RaysimError):
            raise utility
        self.computed += computed
        self.taken += taken
        return float(utility)


def _end_with_parent() -> None:
    """In the process that holds the results: end when the command does, also where it was killed."""
    os.setsid()  # Ctrl-C reaches the parent alone
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=lambda: (wait([parent.sentinel]), os._exit(0)), daemon=True).start()


def _work(
    connection: Connection,
    make: Make,
    threads: int,
    held: MutableMapping[str, object],
    locks: Path,
    room: int,
) -> None:
    """Compute the coalitions that come through the connection, until its other end is closed, as by a dead parent."""
    from raysim.client_side.worker import fixed_threads

    os.setsid()  # Ctrl-C reaches the parent alone
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with fixed_threads(threads), suppress(EOFError, OSError):
        store = SharedTaskStore(held, locks, room)
        utility = make(store)
        while True:
            coalition = connection.recv()
            computed, taken = store.computed, store.taken
            try:
                found: float | RaysimError = utility(coalition)
            except RaysimError as error:
                found = RaysimError(str(error))
            connection.send((found, store.computed - computed, store.taken - taken))
