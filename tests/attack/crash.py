"""Kills and power cuts at a chosen moment, in this process: what they would leave on the disk is copied elsewhere.

A moment is an operation of the main thread on a file under the watched folder: opening it for writing, syncing,
renaming, linking or removing it, making a directory. A kill leaves all that was written, the last write perhaps half. A
power cut leaves the content that was synced, and of the rest a part, nothing or NUL bytes; and names in the order in
which they changed, up to some point after the last sync of a directory, as a journal keeps them.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

CHANGES_OF_NAMES = {
    "os.mkdir": ("made", 0, 2),
    "os.link": ("made", 1, 3),
    "os.remove": ("gone", 0, 1),
    "os.rmdir": ("gone", 0, 1),
    "os.rename": ("moved", 1, 3),
}
"""Event of the interpreter → what happens to a name, and which of its arguments are path and directory."""


class Crash(BaseException):
    """The moment has come."""


@dataclass(frozen=True)
class _Name:
    """A change of a name that may not be on the disk yet."""

    kind: str
    """"made": ``path`` is new. "gone": it was removed. "moved": it was ``source`` before."""
    path: Path
    before: bytes | None = None
    """What a crash would leave of the file that ``path`` named before; None: there was none, or a directory."""
    directory: bool = False
    source: Path | None = None


class Disk:
    """Watches the files under a folder.

    Args:
        folder: what is watched.
        moment: which operation never happens; None: all do.
        power: whether the power is cut, or the process killed.
        image: where the copy goes.
        random: draws what survives.
    """

    def __init__(self, folder: Path, moment: int | None, power: bool, image: Path, random: Random) -> None:
        self.folder, self.image = folder.absolute(), image
        self.operations, self.crashed = 0, False
        self._moment, self._power, self._random = moment, power, random
        self._synced: dict[int, bytes] = {}
        """Inode → content when it was last synced."""
        self._names: list[_Name] = []
        self._last: tuple[Path, int] | None = None
        """The file that was last opened for writing, and its size then."""
        self._fsync, self._open = os.fsync, os.open

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While this lasts, the moment may come, which ends it."""
        for path in self.folder.rglob("*"):  # what is there already is on the disk
            if path.is_file():
                self._synced[path.stat().st_ino] = path.read_bytes()
        _install()
        _disks.append(self)
        os.fsync = self._sync  # type: ignore[assignment]
        os.open = self._opened
        try:
            with suppress(Crash):
                yield
        finally:
            self._leave()

    def _leave(self) -> None:
        os.fsync, os.open = self._fsync, self._open
        if self in _disks:
            _disks.remove(self)

    def happens(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An operation is about to happen."""
        if event == "open":
            path, _, flags = arguments
            if not isinstance(path, (str, bytes, os.PathLike)) or not flags & (os.O_WRONLY | os.O_RDWR):
                return
            file = self._inside(path)
            if file is None:
                return
            self._count()
            if not file.exists():
                self._names.append(_Name("made", file))
            self._last = (file, 0 if flags & os.O_TRUNC or not file.exists() else file.stat().st_size)
        elif event in CHANGES_OF_NAMES:
            kind, path, directory = CHANGES_OF_NAMES[event]
            file = self._inside(arguments[path], arguments[directory])
            if file is None or (kind == "gone" and not file.exists()):
                return
            self._count()
            before = None if kind == "made" else self._kept(file)
            source = self._inside(arguments[0], arguments[2]) if kind == "moved" else None
            self._names.append(_Name(kind, file, before, file.is_dir(), source))

    def _sync(self, descriptor: int) -> None:
        path = self._inside(f"/proc/self/fd/{descriptor}")
        if path is None or threading.current_thread() is not threading.main_thread():
            self._fsync(descriptor)
            return
        self._count()
        self._fsync(descriptor)
        if path.is_dir():
            touched = [place for place, name in enumerate(self._names) if name.path.parent == path]
            del self._names[: max(touched, default=-1) + 1]
        else:
            self._synced[path.stat().st_ino] = path.read_bytes()

    def _opened(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """As ``os.open``; of a name in a directory's handle the interpreter's event does not say the directory."""
        if dir_fd is not None:
            self.happens("open", (Path(f"/proc/self/fd/{dir_fd}").readlink() / path, None, flags))
        return self._open(path, flags, mode, dir_fd=dir_fd)

    def _count(self) -> None:
        self.operations += 1
        if self.operations - 1 == self._moment:
            self._leave()
            self._copy()
            self.crashed = True
            raise Crash

    def _inside(self, path: Any, directory: int = -1) -> Path | None:
        found = Path(os.fsdecode(path))
        if not found.is_absolute() and directory >= 0:
            found = Path(f"/proc/self/fd/{directory}").readlink() / found
        found = found.readlink() if str(found).startswith("/proc/self/fd/") else found.absolute()
        return found if found.is_relative_to(self.folder) and threading.current_thread() is _MAIN else None

    def _kept(self, path: Path) -> bytes | None:
        """What a crash leaves of a file's content now; None if there is no such file."""
        if not path.is_file():
            return None
        content = path.read_bytes()
        if not self._power:
            return content
        synced = self._synced.get(path.stat().st_ino, b"")
        if content == synced:
            return content
        rest = content[len(synced) :] if content.startswith(synced) else b""
        part = rest[: self._random.randrange(len(rest) + 1)]
        return self._random.choice([content, synced, synced + part, synced + bytes(len(part))])

    def _copy(self) -> None:
        for path in sorted(self.folder.rglob("*")):
            target = self.image / path.relative_to(self.folder)
            if path.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                with suppress(FileNotFoundError):  # of another thread
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(self._kept(path) or b"")
        if self._power:
            for name in reversed(self._names[self._random.randrange(len(self._names) + 1) :]):
                self._undo(name)
        elif self._last and self._last[0].is_file():
            path, before = self._last
            target = self.image / path.relative_to(self.folder)
            size = target.stat().st_size
            if size > before and self._random.random() < 0.5:
                os.truncate(target, self._random.randrange(before, size))

    def _undo(self, name: _Name) -> None:
        path = self.image / name.path.relative_to(self.folder)
        if name.kind == "moved" and name.source is not None and path.exists():
            path.rename(self.image / name.source.relative_to(self.folder))
        elif name.kind == "made":
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if name.kind == "gone" and name.directory:
            path.mkdir(exist_ok=True)
        elif name.before is not None and path.parent.is_dir():
            path.write_bytes(name.before)


_MAIN = threading.main_thread()
_disks: list[Disk] = []
_installed = False


def _install() -> None:
    """A hook of the interpreter cannot be taken away again: it is there once, and does nothing without a disk."""
    global _installed
    if not _installed:
        sys.addaudithook(lambda event, arguments: _disks[-1].happens(event, arguments) if _disks else None)
        _installed = True
