"""The table and the picture of a run's partition, made beside its rounds."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from raysim.engine.observer import Silent
from raysim.storage.atomic_files import write_atomically
from raysim.workloads.naming import synthetic_mark

if TYPE_CHECKING:
    from raysim.exchange.pool_protocol import Pool
    from raysim.workloads.federated_data import Federation

MAX_PLOTTED_CLIENTS = 1000
"""Skip the partition's table and picture above this number of clients."""
DRAWING_SECONDS = 60.0
"""Largest number of seconds that the end of a run waits for the picture."""


class PartitionDrawing(Silent):
    """An observer that has the partition written, once, when the first client tasks are done.

    Beside the rounds, as loading the plotting library takes longer than many a round; but not before the first client
    tasks have come back, as until then every core is at work on their start.
    """

    def __init__(self, note: Callable[[str], None], pool: Pool, folder: Path, picture: bool) -> None:
        self._note, self._pool = note, pool
        self._path = folder / ("partition.png" if picture else "partition.csv")
        self._wanted = pool.federation.clients <= MAX_PLOTTED_CLIENTS and not self._path.exists()
        self._finish: Callable[[float], None] | None = None

    def clients_done(self, done: int, participants: int) -> None:
        if self._wanted:
            self._wanted = False
            if self._path.suffix == ".png":
                self._finish = self._pool.aside(write_partition, self._path)
            else:  # a table alone is no work for another process
                self._attempt(partial(write_partition, self._pool.federation, self._path))

    def __enter__(self) -> PartitionDrawing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the picture, but not where a second signal asks to end at once (KeyboardInterrupt)."""
        if self._finish is not None and (kind is None or issubclass(kind, Exception)):
            self._attempt(partial(self._finish, DRAWING_SECONDS))

    def _attempt(self, write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as failure:  # a picture is no reason to lose a run
            self._note(f"the partition could not be drawn: {failure}")


def write_partition(federation: Federation, path: Path) -> None:
    """Write the manifest as CSV, also as a picture if ``path`` is one, and of one graph the client of every node."""
    manifest = federation.manifest()
    write_atomically(path.with_suffix(".csv"), manifest.to_csv(index=False).encode())
    table = getattr(federation, "split_table", None)
    if table is not None:
        write_atomically(path.with_name("split.csv"), table().encode())
    if path.suffix == ".png":
        from raysim.workloads.splits.partition_report import draw_partition

        data = f"{federation.name}{synthetic_mark(federation.synthetic)}"
        drawn = io.BytesIO()
        draw_partition(manifest, drawn, f"{data}: {federation.clients} clients")
        write_atomically(path, drawn.getvalue())
