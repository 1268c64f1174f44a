"""Open data files that may come from anyone: regular files only, and no more unpacked than their size allows.

A pipe or a device would be waited for or never end, and a file of some kilobytes can unpack to many gigabytes.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import zipfile
import zlib
from pathlib import Path
from typing import IO, cast

from raysim.workloads.files.array_files import MAX_ARRAY_BYTES

SMALLEST_LIMIT = 2**28
RATIO = 100
PACKED = (".gz", ".bz2", ".xz", ".zip")
UNREADABLE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)
"""Errors of a file that is damaged, or packed larger than it may be."""


def open_regular(path: Path) -> io.FileIO:
    """Open a file to be read; a link is followed.

    Raises:
        OSError: it is not there, may not be read, or is a pipe, a device or a folder.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return io.FileIO(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path) -> bytes:
    """The content of a file; errors as of :func:`open_regular`."""
    with open_regular(path) as file:
        return file.readall()


def allowed_bytes(size: int) -> int:
    """How many bytes a packed file of ``size`` bytes may hold: 100 times its own, at least 268 MB, at most 16 GB."""
    return min(MAX_ARRAY_BYTES, max(SMALLEST_LIMIT, RATIO * size))


def too_large(limit: int) -> ValueError:
    """The error for a file that unpacks to more than ``limit`` bytes."""
    return ValueError(f"unpacked it takes more than {limit / 1e9:.3g} GB, the limit for a file of its size")


def open_unpacked(path: Path) -> IO[bytes]:
    """A file's content, unpacked if its name ends in one of ``PACKED``; of a .zip archive its only member.

    Raises:
        OSError: as of :func:`open_regular`.
        ValueError, or another of ``UNREADABLE``: it is damaged; while it is read, also where it unpacks to more than
            it may.
    """
    file, suffix = open_regular(path), path.suffix.lower()
    try:
        if suffix not in PACKED:
            return io.BufferedReader(file)
        limit = allowed_bytes(os.fstat(file.fileno()).st_size)
        return io.BufferedReader(_Limited(_unpacking(file, suffix), file, limit))
    except BaseException:
        file.close()
        raise


def _unpacking(file: io.FileIO, suffix: str) -> IO[bytes]:
    if suffix == ".zip":
        archive = zipfile.ZipFile(file)
        if len(archive.infolist()) != 1:
            raise ValueError(f"it holds {len(archive.infolist())} files; give an archive with one, or unpack it")
        return archive.open(archive.infolist()[0])
    if suffix == ".gz":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    return bz2.BZ2File(file) if suffix == ".bz2" else lzma.LZMAFile(file)


class _Limited(io.RawIOBase):
    """A stream that ends with an error once more than ``limit`` bytes were read."""

    def __init__(self, source: IO[bytes], file: io.FileIO, limit: int) -> None:
        self._source, self._file, self._left, self._limit = source, file, limit, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        found = self._source.read(len(view))
        self._left -= len(found)
        if self._left < 0:
            raise too_large(self._limit)
        view[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._file.close()
        super().close()
