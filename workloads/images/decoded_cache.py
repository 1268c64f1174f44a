"""Decoded images on disk: one file of pixels for a folder of images, filled row by row as images are needed.

All processes of a node map the same file, so the decoded images are in memory once, and the system can drop them.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.cache_files import CACHE
from raysim.workloads.images.decode import decode

FORMAT = 1  # part of the key: raise it when decode gives other pixels
CHANNELS = 3
PIXELS, RECORDS = "pixels", "records"  # names of a cache's files


@dataclass(eq=False)
class ImageCache:
    """The images ``names``, paths relative to ``folder``, as rows of one array uint8 [N, size, size, 3].

    Beside the pixels lies a record for each row: size and modification time of the image file, and the pixels'
    checksum. A row that does not agree with its record, because it was never written, was damaged or was cut off, or
    because the image file has changed, is decoded again. That also makes it safe for any number of processes to fill
    the same rows at once: they write the same bytes, and what a reader sees half-written fails its checksum.

    Small to pickle: names, no pixels.
    """

    folder: Path
    names: NDArray[np.str_]
    size: int
    truncated: bool
    place: Path
    """The folder of this cache's two files; its name is a hash of all that decides on the pixels."""

    def images(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The whole array, [N, size, size, 3], in which the given rows are decoded; others may be zeros.

        The array is the mapped file: it costs no memory until it is read, and must not be written to. WorkloadError
        for an image that cannot be decoded and for a cache that cannot be written.
        """
        try:
            pixels, checked = self._opened
            missing = rows[~checked[rows]]
            if len(missing):
                self._fill(pixels, checked, np.unique(missing).tolist())
        except OSError as error:
            raise WorkloadError(
                f"the image cache {self.place} cannot be used ({error}); make room or set cache_dir to another folder"
            ) from error
        return pixels

    def fill(self) -> None:
        """Decode every image that is not there yet, on all cores. WorkloadError, as ``images``, for the first bad one.

        Pillow decodes without Python's lock, so threads do; but how it treats files that end early is one setting for
        all threads, so those that accept these go one after another.
        """
        if not len(self.names):
            return  # an empty file cannot be mapped
        threads = 1 if self.truncated else os.cpu_count() or 1
        parts = np.array_split(np.arange(len(self.names)), -(-len(self.names) // _PART))
        self.images(parts[0][:0])  # opened once, before any thread
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(self.images, parts):
                pass

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_opened"}

    @cached_property
    def _opened(self) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The mapped pixels, and whether a row has been checked."""
        self.place.mkdir(parents=True, exist_ok=True)
        shape = (len(self.names), self.size, self.size, CHANNELS)
        for name, length in ((PIXELS, int(np.prod(shape))), (RECORDS, len(self.names) * _ROW)):
            with (self.place / name).open("ab") as file:
                if file.tell() != length:  # new, or damaged; a sparse file, it takes no room yet
                    file.truncate(length)
        # Not read-only, though it is only read: torch warns of arrays that it could not write to.
        pixels = np.memmap(self.place / PIXELS, dtype=np.uint8, mode="r+", shape=shape)
        return pixels, np.zeros(len(self.names), dtype=np.bool_)

    def _fill(self, pixels: NDArray[np.uint8], checked: NDArray[np.bool_], rows: Iterable[int]) -> None:
        # Written with system calls, not through the mapping, where a full disk would kill the process.
        pixel_file, record_file = self.place / PIXELS, self.place / RECORDS
        with pixel_file.open("r+b", buffering=0) as images, record_file.open("r+b", buffering=0) as records:
            for row in rows:
                path = self.folder / str(self.names[row])
                try:
                    status = path.stat()
                except FileNotFoundError:
                    decode(path, self.size, truncated=self.truncated)  # has the words for it
                    raise
                stored = np.frombuffer(os.pread(records.fileno(), _ROW, row * _ROW), dtype=np.int64)
                source = [status.st_size, status.st_mtime_ns]
                if stored.tolist() != [*source, _checksum(pixels[row])]:
                    decoded = decode(path, self.size, truncated=self.truncated)
                    _write(images.fileno(), decoded.tobytes(), row * decoded.nbytes)
                    record = np.array([*source, _checksum(decoded)], dtype=np.int64)
                    _write(records.fileno(), record.tobytes(), row * _ROW)
                checked[row] = True


def open_cache(folder: Path, names: NDArray[np.str_], size: int, *, truncated: bool, cache_dir: str) -> ImageCache:
    """The cache of these images, below ``cache_dir`` (empty: ``CACHE``); nothing is read or written yet."""
    import PIL

    # Decoders and filters of another Pillow may round differently, and a run must repeat to the last bit.
    content = [FORMAT, PIL.__version__, str(folder.resolve()), size, truncated, names.tolist()]
    key = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]
    return ImageCache(folder, names, size, truncated, Path(cache_dir or CACHE).expanduser().resolve() / "images" / key)


_PART = 64  # images that a thread takes at a time
_ROW = 3 * 8  # bytes of a record: file size, modification time in ns, checksum, each int64


def _checksum(pixels: NDArray[np.uint8]) -> int:
    """CRC-32 with a bit above it, so that a record of zeros never fits."""
    return zlib.crc32(pixels.tobytes()) | 1 << 32


def _write(descriptor: int, content: bytes, offset: int) -> None:
    while content:
        written = os.pwrite(descriptor, content, offset)
        content, offset = content[written:], offset + written
