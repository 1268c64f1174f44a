"""Cells of a study as Ray tasks over a cluster whose nodes share the folder of the results.

A file beside the results stands for the study that is at work: a node that does not see it has another file system, and
a cell stops after its present round when it is gone.
"""

from __future__ import annotations

import csv
import os
import socket
import time
from pathlib import Path

from raysim.actors.long_tasks import LongTasks
from raysim.actors.sigterm import ends_by_sigterm
from raysim.engine.observer import Silent
from raysim.errors import RaysimError
from raysim.monitor import status_file
from raysim.storage.atomic_files import write_atomically
from raysim.studies.board import Board
from raysim.studies.cell_report import News
from raysim.studies.cell_run import End, attempt, config_of, folder_of
from raysim.studies.cells_left import CellsLeft
from raysim.studies.side_by_side import Place, SideBySide
from raysim.studies.study_file import Cell

LISTEN = 0.5
"""Seconds between two looks at what has returned."""


def work(cell: Cell, failed_at: int, token: str) -> End:
    """Attempt a cell, in a Ray task; SIGTERM ends it, and where it is done again it goes on from its checkpoint."""
    ends_by_sigterm()
    if not Path(token).exists():
        reason = f"node {socket.gethostname()} does not see {token}: put the study where all nodes see it"
        return End("failed", reason)
    return attempt(cell, failed_at, Silent(), lambda: not Path(token).exists())


class CellsOnRay(SideBySide):
    """Computes cells as Ray tasks, as many at a time as the cluster has room for, or ``workers`` of them."""

    def __init__(self, left: CellsLeft, workers: int | None, board: Board, tasks: LongTasks, results: Path) -> None:
        super().__init__(left, board)
        self._workers, self._tasks = workers, tasks
        self._token = results / f".study-{socket.gethostname()}-{os.getpid()}"
        results.mkdir(parents=True, exist_ok=True)
        write_atomically(self._token, b"")
        self._sent: dict[object, Place] = {}

    def _places(self) -> list[Place]:
        return [*self._sent.values()]

    def _has_room(self, cell: Cell) -> bool:
        engine = cell.config().engine
        room = self._tasks.room(engine.threads, engine.gpus_per_client)
        if not (room or self._sent):  # it would wait for ever
            self._tasks.check(cell.name, engine.threads, engine.gpus_per_client)
        return len(self._sent) < (room if self._workers is None else min(room, self._workers))

    def _begin(self, cell: Cell) -> None:
        engine = config_of(cell).engine
        arguments = (cell, self._left.failed_at(cell), str(self._token))
        sent = self._tasks.send(cell.name, engine.threads, engine.gpus_per_client, work, *arguments)
        self._sent[sent] = Place(cell)

    def _stop(self) -> None:
        self._token.unlink(missing_ok=True)

    def _end(self) -> None:
        self._stop()

    def _listen(self) -> bool:
        returned = self._tasks.returned(self._sent, LISTEN)
        for reference, found in returned.items():
            place = self._sent.pop(reference)
            if isinstance(found, RaysimError):
                found = self._given_up(place.cell, str(found))
            elif self._stopping and found.kind == "failed":  # it was still queued, and finds no study at work
                found = End("stopped")
            self._ended(place, found)
        for place in self._sent.values():
            if (news := _news(folder_of(place.cell), time.monotonic() - place.begun)) is not None:
                self._board.hears(place.cell, news)
        return bool(returned)


def _news(folder: Path, seconds: float) -> News | None:
    """The state of a run by its folder."""
    try:
        with (folder / "rounds.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        rounds = int(status_file.read(folder).get("rounds", 0))
        done = int(rows[-1]["round"])
        accuracy = float(next((row["accuracy"] for row in reversed(rows) if row.get("accuracy")), "nan"))
    except (OSError, ValueError, LookupError):  # none yet, or a row half written
        return None
    return News(done, rounds, accuracy, seconds / done * (rounds - done))
