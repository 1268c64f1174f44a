"""Open the files of a run's folder: no link is followed, and nothing but a regular file is read or written.

A run folder may come from anyone, and a link in it may point to any file of the user's. So the folder itself is opened
once, wherever it lies and through whatever links of the user's own; from there on every name is looked up in the handle
of its directory, with ``O_NOFOLLOW``. A file that is changed in place must have no second name (a hard link) either.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Literal

from raysim.errors import ResultsError

Mode = Literal["rb", "ab", "r+b", "wb", "xb"]
_FLAGS: dict[str, int] = {
    "rb": os.O_RDONLY,
    "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT,
    "r+b": os.O_RDWR,
    "wb": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "xb": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
}
_IN_PLACE = ("ab", "r+b", "wb")
ADVICE = "A run's folder holds none: put the file itself there, or take the link away."
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
"""Signs of control, of line ends and of writing from the right, and halves of signs, which no file can hold."""
DEEPEST = 32
"""Folders in folders of a run's folder: a run makes three, and a tracker's own files a few more."""


class LinkError(OSError):
    """A name in a run's folder is a link, or no regular file; the message says which, without the name."""


def check_links(folder: Path, advice: str = ADVICE) -> None:
    """Look for links in a run's folder, at any depth; the folder itself may be reached through one.

    Args:
        advice: the sentence that says what to do.

    Raises:
        ResultsError: there is one; the message names it. Or folders lie in one another deeper than ``DEEPEST``.
    """
    waiting = [(str(folder), 0)]
    while waiting:
        place, depth = waiting.pop()
        if depth > DEEPEST:
            raise ResultsError(f"{harmless(str(folder))} has folders in one another, more than {DEEPEST} deep.")
        with suppress(NotADirectoryError, FileNotFoundError, PermissionError), os.scandir(place) as entries:
            for entry in entries:
                if entry.is_symlink():
                    raise ResultsError(f"{harmless(entry.path)} is a link, which is neither read nor written. {advice}")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1))


@contextmanager
def directory(path: Path, inner: int = 0) -> Iterator[int]:
    """A handle of a directory, for ``dir_fd``.

    Args:
        inner: how many names at the end of ``path`` lie within the run's folder, and so may be no links.
    """
    place = path
    for _ in range(inner):
        place = place.parent
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in path.parts[len(path.parts) - inner :] if inner else ():
            try:
                deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            except OSError as error:
                _explain(error, name, handle)
                raise
            os.close(handle)
            handle = deeper
        yield handle
    finally:
        os.close(handle)


def open_file(path: Path, mode: Mode = "rb", inner: int = 0, *, links: bool = False) -> FileIO:
    """Open a file without a buffer.

    Args:
        mode: as of the built-in ``open``.
        inner: how many directories above the file belong to the run's folder.
        links: a link is followed: the name is the user's own, as that of a ``--config`` file.

    Raises:
        LinkError: it is a link or no regular file; or it would be changed in place and has another name too.
        OSError: as the built-in ``open``.
    """
    with directory(path.parent, inner) as place:
        truncates = _FLAGS[mode] & os.O_TRUNC
        # Opening a pipe would otherwise wait for its other end; what is cut is cut once it is known to be a file.
        flags = (_FLAGS[mode] & ~truncates) | (0 if links else os.O_NOFOLLOW) | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path.name, flags, 0o666, dir_fd=place)
        except OSError as error:
            _explain(error, path.name, place)
            raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise LinkError(errno.EINVAL, "it is not a regular file")
        if mode in _IN_PLACE and found.st_nlink > 1:
            raise LinkError(errno.EMLINK, "it is a hard link, of a file that has another name too")
        if truncates:
            os.ftruncate(descriptor, 0)
        return FileIO(descriptor, mode.replace("x", "w"))
    except BaseException:
        os.close(descriptor)
        raise


def read_bytes(path: Path, inner: int = 0) -> bytes:
    """The content of a file; errors as of :func:`open_file`."""
    with open_file(path, inner=inner) as file:
        return file.readall()


def is_there(path: Path) -> bool:
    """Whether a folder has the name, be it that of a link to nowhere."""
    return os.path.lexists(path)


def _explain(error: OSError, name: str, place: int) -> None:
    """Raise a plainer error in the place of this one, if the name is that of a link or of no file at all."""
    with suppress(FileNotFoundError, PermissionError, NotADirectoryError):
        kind = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
        if stat.S_ISLNK(kind):
            raise LinkError(errno.ELOOP, "it is a link, which is neither read nor written") from error
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # a socket, or a pipe without a reader
            raise LinkError(errno.EINVAL, "it is not a regular file") from error


def printable(text: str) -> str:
    """Text that may come from a foreign file, as a terminal may show it: control characters are written out."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else ascii(sign)[1:-1] for sign in text)


def without_controls(text: str) -> str:
    """Text that may hold foreign names, as a file holds it: line ends and signs that steer a terminal are spaces."""
    return _CONTROLS.sub(" ", text)


def harmless(text: str) -> str:
    """Text that may hold names from a foreign file, as it is logged or printed.

    Control characters but line ends and tabs are written out, and a backslash stands before the signs by which a shell
    would run a part of it.
    """
    return printable(text).replace("`", "\\`").replace("$(", "\\$(").replace("${", "\\${")
