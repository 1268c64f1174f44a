"""Spills received updates to a memory-mapped file once they exceed the room in the object store."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.errors import ResultsError
from raysim.storage import pytree

if TYPE_CHECKING:
    from raysim.storage.pytree import Array

ALIGNMENT = 64
SEGMENT = 1 << 30
"""Bytes of the file that are mapped at a time: every mapping holds a file descriptor, of which there are few."""
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Bytes that the container of this process may use, in control groups of version 2 and 1."""


def usable_memory() -> int:
    """The bytes of main memory that this process may use: the machine's, or its container's if these are fewer."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in LIMITS:
        try:
            found = min(found, int(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):  # no such control group, or "max", no limit
            continue
    return found


class UpdateSpill:
    """Takes results as they arrive and gives them back with the same bits.

    A result of the Ray pool is a view into the object store, which it fills until aggregation: 1,000 updates of
    MobileNet are 9 GB. From ``room`` bytes on, the arrays of further results are written to a file that is mapped
    instead, so that the object store has to hold no more than what is on its way, and the system can drop the file's
    pages when memory runs short.

    Args:
        room: bytes of results in one round that may stay where they are.
        folder: where the file is made (and at once removed from the directory: nothing stays behind after a kill).
    """

    def __init__(self, room: int, folder: Path) -> None:
        self._room, self._folder = room, folder
        self._file: Any = None
        self._mapped: Any = None
        self._start, self._position, self._stop = 0, 0, 0
        """Bounds of the mapped segment: where it begins, where the next array goes, and where it ends."""

    def take(self, result: Any) -> Any:
        """The result (a state tree), which may hold read-only arrays in place of its own.

        Raises:
            ResultsError: the file cannot be written.
        """
        size = pytree.nbytes(result)
        if size <= self._room:
            self._room -= size
            return result
        self._room = 0
        try:
            return self._moved(result)
        except OSError as error:
            raise ResultsError(
                f"{self._folder}: the updates of this round do not fit into memory and cannot be written to a file "
                f"there ({error.strerror or error}). Free some space, sample fewer clients (--sampling_rate), or write "
                "the run to another disk (--output)"
            ) from error

    def _moved(self, result: Any) -> Any:
        leaves = pytree.leaves(result)
        needed = sum(leaf.nbytes + ALIGNMENT for _, leaf in leaves if isinstance(leaf, np.ndarray))
        if self._mapped is None or needed > self._stop - self._position:
            self._map(max(SEGMENT, -(-needed // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY))
        return pytree.map_arrays(result, self._move)

    def _map(self, length: int) -> None:
        """Another segment of the file, which takes no room on the disk yet."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - as long as this object
            weakref.finalize(self, self._file.close)
        self._start = self._position = self._stop
        self._stop += length
        self._file.truncate(self._stop)
        self._mapped = mmap.mmap(self._file.fileno(), length, access=mmap.ACCESS_READ, offset=self._start)

    def _move(self, array: Array) -> Array:
        # Written with system calls, not through the mapping, where a full disk would kill the process.
        content = memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        start = self._position
        while len(content):
            written = os.pwrite(self._file.fileno(), content, self._position)
            content, self._position = content[written:], self._position + written
        self._position += -self._position % ALIGNMENT
        found = np.frombuffer(self._mapped, array.dtype, array.size, start - self._start)
        return found.reshape(array.shape)
