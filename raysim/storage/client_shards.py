"""Which file of a checkpoint holds which state, so that the next checkpoint writes only what changed."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from raysim.storage.pytree import JSON
from raysim.storage.state_files import pair

STEM = "clients-"
EARLIER = "server-after-"
"""What names of files with the server's state after an earlier round than the checkpoint's begin with."""


@dataclass
class _File:
    """One pair of files (``clients-00007.json`` and ``.safetensors``), which is never written again."""

    clients: int
    """Number of client states in the file."""
    living: set[int]
    """Clients whose newest state is in this file; the states of the others are in later files."""
    entries: Mapping[str, JSON]
    """Names of the two files → sha256 and bytes, as in the manifest."""


class ClientFiles:
    """The files of one checkpoint that the next may take over: clients' by number, of which a higher one is newer.

    A new checkpoint takes over old files as hard links and adds files with what changed since. Its cost is then that of
    the changed states (each of them written at most twice on average), not that of all clients that were ever sampled.
    Every checkpoint stays a whole directory of its own: it can be copied, and removing another one takes nothing away.
    (What damages a file on the disk does so in all checkpoints that share it; the checksums tell.)
    """

    def __init__(self) -> None:
        self._folder = Path()
        self._files: dict[int, _File] = {}
        self._home: dict[int, int] = {}
        self._servers: dict[int, Mapping[str, JSON]] = {}
        """The two files that hold the server's state after a round, by round: entries by name."""

    @property
    def next_number(self) -> int:
        """Number of the next file of client states."""
        return max(self._files, default=-1) + 1

    def plan(self, changed: Collection[int]) -> tuple[list[int], list[int]]:
        """Choose which files the next checkpoint takes over and which clients' states it writes, both ascending.

        A file of which less than half is still in use is left behind, and its other clients are written again: so a
        checkpoint is at most twice as large as the states in it. (And so is one that somebody has removed.)
        """
        outdated = Counter(self._home[client] for client in changed if client in self._home)
        reused: list[int] = []
        written = set(changed)
        for number, file in self._files.items():
            there = all((self._folder / name).exists() for name in file.entries)
            if there and 2 * (len(file.living) - outdated[number]) >= file.clients:
                reused.append(number)
            else:
                written |= file.living
        return reused, sorted(written)

    def take_over(self, numbers: Iterable[int], target: Path) -> dict[str, JSON]:
        """Link files into the new checkpoint ``target``; returns their entries for its manifest."""
        taken: dict[str, JSON] = {}
        for number in numbers:
            for name, entry in self._files[number].entries.items():
                _link(self._folder / name, target / name)
                taken[name] = entry
        return taken

    def servers_in(self, round: int, earlier: Collection[int], entries: Mapping[str, JSON]) -> None:
        """The checkpoint of ``round`` also holds the server's state after it and after some earlier rounds."""
        stems = {**{number: f"{EARLIER}{number}" for number in earlier}, round: "server"}
        self._servers = {number: {name: entries[name] for name in pair(own)} for number, own in stems.items()}

    def take_over_server(self, round: int, target: Path) -> dict[str, JSON]:
        """Link the server's state after a round into ``target`` as an earlier one; its entries, none if it is gone."""
        known = self._servers.get(round, {})
        if not all((self._folder / name).exists() for name in known):
            return {}
        for old, new in zip(known, names := pair(f"{EARLIER}{round}"), strict=False):
            _link(self._folder / old, target / new)
        return dict(zip(names, known.values(), strict=False))

    def moved(self, folder: Path, reused: Collection[int]) -> None:
        """From now on the files are those in ``folder``: of the old ones only ``reused``, to which some are added."""
        self._folder = folder
        self._files = {number: self._files[number] for number in sorted(reused)}

    def add(self, number: int, clients: Collection[int], entries: Mapping[str, JSON]) -> list[int]:
        """A file with states of ``clients``; those whose newest state is there (no later file has one)."""
        newest = [client for client in clients if self._home.get(client, -1) < number]
        for client in newest:
            old = self._files.get(self._home.get(client, -1))
            if old is not None:
                old.living.discard(client)
            self._home[client] = number
        self._files[number] = _File(len(clients), set(newest), entries)
        return newest


def stem(number: int) -> str:
    """Name of a file of client states, without its endings."""
    return f"{STEM}{number:05d}"


def number_of(name: str) -> int:
    """The number in a file's name: 7 for ``clients-00007.json``."""
    return int(Path(name).stem.removeprefix(STEM))


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links, or with too many of this file
        shutil.copyfile(source, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())
