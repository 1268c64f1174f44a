"""A process that computes one cell of a study, and tells its parent of it.

It is forked from a server that has loaded the modules that every run needs (:mod:`raysim.studies.loaded`), in a
session of its own: Ctrl-C reaches the parent alone, which asks its cells to stop by SIGTERM. A cell whose parent is
gone stops by itself. Both leave a checkpoint of the last whole round.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from raysim.cli.interruption import Interruption
from raysim.engine.observer import Several
from raysim.schedule import planned_intervals
from raysim.studies.cell_report import Reporter
from raysim.studies.cell_run import End, attempt

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from raysim.studies.cell_report import News
    from raysim.studies.study_file import Cell


def work(connection: Connection, cell: Cell, failed_at: int) -> None:
    """Attempt a cell; news and in the end an :class:`~raysim.studies.cell_run.End` go through the connection."""
    os.setsid()

    def tell(message: News | End) -> None:
        with suppress(OSError):  # the parent is gone, and the watching thread says so
            connection.send(message)

    threading.Thread(target=_stop_with_parent, args=(connection,), daemon=True).start()
    try:
        with Interruption() as interruption:
            reporter = Reporter(len(planned_intervals(cell.config())), tell)
            end = attempt(cell, failed_at, Several(reporter, interruption), interruption.asked)
            interruption.rounds_ended()
    except KeyboardInterrupt:
        end = End("stopped")
    tell(end)


def _stop_with_parent(connection: Connection) -> None:
    """Ask this process to stop when the other end is closed, which it is when the parent has died."""
    with suppress(EOFError, OSError):
        connection.recv()
    os.kill(os.getpid(), signal.SIGTERM)
