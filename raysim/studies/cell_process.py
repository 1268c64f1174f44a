"""A process that computes cells of a study, one after another, and tells its parent of them.

It is forked from a server that has loaded the modules that every run needs (:mod:`raysim.studies.loaded`), in a
session of its own: Ctrl-C reaches the parent alone, which asks its cells to stop by SIGTERM. It is kept for many cells,
as the modules and the data of its first are loaded then. A process whose parent is gone stops by itself. A cell that
was stopped either way has a checkpoint of its last whole round.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from raysim.cli.interruption import Interruption
from raysim.engine.observer import Several
from raysim.errors import RaysimError
from raysim.schedule import planned_intervals
from raysim.studies.cell_report import Reporter
from raysim.studies.cell_run import End, attempt

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from raysim.studies.cell_report import News
    from raysim.studies.study_file import Cell

    Orders = queue.SimpleQueue[tuple[Cell, int] | None]


def work(connection: Connection) -> None:
    """Attempt the cells that come through the connection, each with the time of its earlier failure.

    News and in the end of each cell an :class:`~raysim.studies.cell_run.End` go back through it.
    """
    os.setsid()
    orders: Orders = queue.SimpleQueue()

    def tell(message: News | End) -> None:
        with suppress(OSError):  # the parent is gone, and the listening thread says so
            connection.send(message)

    with Interruption() as interruption:
        threading.Thread(target=_listen, args=(connection, orders), daemon=True).start()
        under_way = False
        try:
            while not interruption.asked() and (order := orders.get()) is not None:
                under_way = True
                end = _attempt(*order, tell, interruption)
                under_way = False
                tell(end)
        except KeyboardInterrupt:
            if under_way:
                tell(End("stopped"))


def _attempt(cell: Cell, failed_at: int, tell: Callable[[News | End], None], interruption: Interruption) -> End:
    reporter = Reporter(len(planned_intervals(cell.config())), tell)
    try:
        return attempt(cell, failed_at, Several(reporter, interruption), interruption.asked)
    except RaysimError as error:  # of its claim or its row, on a full disk say
        return End("failed", str(error))
    finally:
        interruption.rounds_ended()


def _listen(connection: Connection, orders: Orders) -> None:
    """Hand orders on; ask this process to stop when the other end is closed, as it is when the parent has died."""
    with suppress(EOFError, OSError):
        while True:
            orders.put(connection.recv())
    orders.put(None)
    os.kill(os.getpid(), signal.SIGTERM)
