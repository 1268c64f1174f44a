"""Where a round's updates wait for the last one: in the pool's memory as far as there is room, then in a file."""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim import tree
from raysim.errors import ResultsError

if TYPE_CHECKING:
    from raysim.tree import Array

ALIGNMENT = 64


class Landing:
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

    def take(self, result: Any) -> Any:
        """The result (a state tree), which may hold read-only arrays in place of its own.

        Raises:
            ResultsError: the file cannot be written.
        """
        size = tree.nbytes(result)
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
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - lives as long as this object
        file, page = self._file, mmap.ALLOCATIONGRANULARITY
        start = -(-file.seek(0, os.SEEK_END) // page) * page
        file.seek(start)
        places: list[int] = []

        def write(array: Array) -> None:
            # Written with system calls, not through the mapping, where a full disk would kill the process.
            places.append(file.seek(-file.tell() % ALIGNMENT, os.SEEK_CUR) - start)
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8))

        tree.map_arrays(result, write)
        file.write(bytes(1))  # nothing cannot be mapped
        file.flush()
        mapped = mmap.mmap(file.fileno(), file.tell() - start, access=mmap.ACCESS_READ, offset=start)
        following = iter(places)

        def read(array: Array) -> Array:
            found: Array = np.frombuffer(mapped, array.dtype, array.size, next(following)).reshape(array.shape)
            return found

        return tree.map_arrays(result, read)
