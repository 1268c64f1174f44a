"""A remote run's folder on this machine, checked by digests as it comes."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from raysim.errors import DamagedError, ResultsError
from raysim.remote.origins import write_origins
from raysim.remote.state import BLOCK_BYTES, BLOCKS, State, StoredFile, whole_states
from raysim.remote.store import PATIENCE, Store, UnreachableError
from raysim.remote.upload import run_files
from raysim.storage.atomic_files import write_atomically, writing
from raysim.storage.folder_files import check_links, open_file
from raysim.units import byte_count

T = TypeVar("T")
_ATTEMPTS = 3


class _GoneError(Exception):
    """A block is not there any more; unlike an error of the operating system it says nothing of this machine's disk."""


def patiently(action: Callable[[], T]) -> T:
    """The action's result, tried again with growing pauses while the remote side does not answer.

    Raises:
        UnreachableError: it has not answered for long.
    """
    pause, begun = PATIENCE.first_pause, time.monotonic()
    while True:
        try:
            return action()
        except UnreachableError:
            if time.monotonic() + pause > begun + PATIENCE.at_end:
                raise
            time.sleep(pause)
            pause = min(2 * pause, PATIENCE.longest_pause)


def download(store: Store, folder: Path, wanted: Callable[[str], bool] = lambda name: True) -> State:
    """Make ``folder`` what the newest whole state says; blocks that are there already are not read again.

    Args:
        wanted: says of a file's name whether it is needed.

    Raises:
        ResultsError: there is no run, or no room for it.
        DamagedError: no state is whole, or a block is not what its name says.
        UnreachableError: the remote side does not answer.
    """
    for _ in range(_ATTEMPTS):
        states = patiently(lambda: whole_states(store))
        if not states:
            raise ResultsError(f"{store.address} is no run folder: there is no state of a run.")
        try:
            _bring(store, states[-1], folder, wanted)
        except _GoneError:  # a newer state has taken its place meanwhile
            continue
        write_origins(folder, [states[-1].name])
        return states[-1]
    raise UnreachableError(f"{store.address} changes faster than it can be read. Try again when the run has ended.")


def _bring(store: Store, state: State, folder: Path, wanted: Callable[[str], bool]) -> None:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    check_links(folder)
    files = [file for file in state.files if wanted(file.name)]
    there = {name: path for name, path in run_files(folder) if wanted(name)}
    changed = [file for file in files if file.name not in there or not _is(file, there[file.name])]
    size, free = sum(file.bytes for file in changed), shutil.disk_usage(folder).free
    if size > free:
        raise ResultsError(f"{store.address} needs {byte_count(size)} in {folder}, and {byte_count(free)} are free.")
    for name in there.keys() - {file.name for file in files}:
        _remove(there[name], folder)
    # config.yaml comes last: it is what makes the folder a run.
    for file in sorted(changed, key=lambda file: file.name == "config.yaml"):
        _write(store, file, folder)


def _is(file: StoredFile, path: Path) -> bool:
    """Whether a local file has the blocks of the stored one."""
    if path.stat().st_size != file.bytes:
        return False
    with open_file(path) as content:
        return all(_digest(content.read(BLOCK_BYTES)) == digest for digest in file.blocks)


def _write(store: Store, file: StoredFile, folder: Path) -> None:
    path = folder / file.name
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, _blocks(store, file))


def _blocks(store: Store, file: StoredFile) -> Iterator[bytes]:
    """The blocks of a file, one in memory at a time, as many bytes as its state says."""
    sizes = file.sizes()
    for digest in file.blocks:
        try:
            data = _block(store, digest, file.name)
        except FileNotFoundError as error:
            raise _GoneError from error
        if len(data) != sizes[digest]:
            raise DamagedError(
                f"damaged: {store.address}: {file.name} has not the {file.bytes} bytes that were written."
            )
        yield data


def _block(store: Store, digest: str, name: str) -> bytes:
    data = patiently(lambda: store.get(f"{BLOCKS}/{digest}", BLOCK_BYTES))
    if _digest(data) != digest:
        raise DamagedError(f"damaged: {store.address}: a block of {name} is not what was written (SHA-256).")
    return data


def _remove(path: Path, folder: Path) -> None:
    """Remove a file, and the folders that it leaves empty."""
    path.unlink()
    for parent in path.relative_to(folder).parents[:-1]:
        with suppress(OSError):
            (folder / parent).rmdir()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
