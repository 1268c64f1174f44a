"""Files that are written whole or not at all, and errors that say what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Literal

from raysim.errors import DiskFullError, ResultsError
from raysim.storage.folder_files import ADVICE, LinkError, directory, open_file

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of the operating system that mean that no room is left."""


def write_atomically(path: Path, data: bytes | Iterable[bytes], *, durable: bool = True) -> None:
    """Write the whole file or, after a kill or on a full disk, leave the one that was there before.

    Args:
        data: the content, or its parts one after another, of which only one is in memory; an error of theirs leaves
            the old file too.
        durable: waits until the data is on the disk, so that it also survives a loss of power.
    """
    partial = path.name + ".partial"
    with writing(path), directory(path.parent) as place:
        _remove(partial, place)  # what a kill left, or a link that somebody laid there
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(partial, flags, 0o666, dir_fd=place), "wb") as file:
                for part in (data,) if isinstance(data, bytes) else data:
                    file.write(part)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(partial, path.name, src_dir_fd=place, dst_dir_fd=place)
        finally:
            _remove(partial, place)


def write_new(path: Path, data: bytes) -> bool:
    """Write a whole new file; False if there is one already, as where two processes take a folder at once."""
    try:
        write_durably(path, data, "xb")
    except FileExistsError:
        return False
    except OSError:
        path.unlink()
        raise
    return True


def write_durably(path: Path, data: bytes, mode: Literal["wb", "xb"] = "wb") -> None:
    """Write a file and waits until it is on the disk."""
    with path.open(mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _remove(name: str, place: int) -> None:
    """Remove a name, and never what a link of that name points to."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=place)


def sync_directory(path: Path) -> None:
    """Write a directory's names to the disk, so that a new or replaced file survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_whole(path: Path, data: bytes) -> None:
    """Append to a file all of the data or, where the disk is full, nothing; never to what a link points to."""
    with open_file(path, "ab") as file:
        write_whole(file, data)


def write_whole(file: FileIO, data: bytes) -> None:
    """Write at the end of an open file all of the data or, where the disk is full, nothing."""
    before, rest = file.seek(0, os.SEEK_END), memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        os.ftruncate(file.fileno(), before)
        raise


def beside(folder: Path, ending: str) -> Path:
    """The place ``NAME-ending`` beside a folder NAME, which may be given as ``.``; nothing is made."""
    place = folder.resolve()
    return place.with_name(f"{place.name}-{ending}")


def unused(path: Path) -> Path:
    """The path or, with -2, -3 … behind it, the first that is not yet taken; nothing is made."""
    found, attempt = path, 1
    while found.exists():
        attempt += 1
        found = path.with_name(f"{path.name}-{attempt}")
    return found


def check_folder(path: Path) -> None:
    """ResultsError if there is a file where this folder of the user's, or one above it, is to be."""
    place = next((one for one in (path, *path.parents) if one.exists()), path)
    if place.exists() and not place.is_dir():
        raise ResultsError(f"{place} is a file, where a folder is needed. Choose another place for --output.")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the operating system about a file into a ResultsError that says what to do."""
    try:
        yield
    except LinkError as error:
        raise ResultsError(f"Cannot write {path}: {error.strerror}. {ADVICE}") from error
    except OSError as error:
        kind = DiskFullError if error.errno in FULL else ResultsError
        raise kind(
            f"Cannot write {path}: {error.strerror or error}. Free space there or choose a folder that can be written; "
            "a run that was going on continues from its last checkpoint with --resume."
        ) from error
