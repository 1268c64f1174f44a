"""Which file of a checkpoint holds which state, so that the next checkpoint writes only what changed."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from raysim.storage.pytree import JSON
from raysim.storage.state_files import pair

STEM = "clients-"
EARLIER = "server-after-"
"""Prefix of files with the server's state after an earlier round than the checkpoint's."""
SELECTION = "selection"
"""Name of the files with what the choice of later cohorts depends on."""


@dataclass
class _File:
    """One pair of files (``clients-00007.json`` and ``.safetensors``), which is never written again."""

    clients: int
    """Number of client states in the file."""
    living: set[int]
    """Clients whose newest state is in this file; the states of the others are in later files."""


class ClientFiles:
    """The files of one checkpoint that the next may take over: clients' by number, of which a higher one is newer.

    A new checkpoint takes over old files as hard links and adds files with what changed since. Its cost is then that of
    the changed states (each of them written at most twice on average), not that of all clients that were ever sampled.
    Every checkpoint stays a whole directory of its own: it can be copied, and removing another one takes nothing away.
    (What damages a file on the disk does so in all checkpoints that share it; the checksums tell.)
    """

    def __init__(self) -> None:
        self._folder, self._round = Path(), 0
        self._entries: Mapping[str, JSON] = {}
        self._files: dict[int, _File] = {}
        self._home: dict[int, int] = {}

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
            if self.has(stem(number)) and 2 * (len(file.living) - outdated[number]) >= file.clients:
                reused.append(number)
            else:
                written |= file.living
        return reused, sorted(written)

    def server_stem(self, round: int) -> str:
        """Name of the files that hold the server's state after a round, without their endings."""
        return "server" if round == self._round else f"{EARLIER}{round}"

    def has(self, stem_of_pair: str) -> bool:
        """Whether the checkpoint lists a pair of files of this name, and both are still there."""
        return all(name in self._entries and (self._folder / name).exists() for name in pair(stem_of_pair))

    def take_over(self, old: str, new: str, target: Path) -> dict[str, JSON]:
        """Link a pair of files into the checkpoint ``target`` under a new name; returns their entries there."""
        names = dict(zip(pair(old), pair(new), strict=True))
        for source, name in names.items():
            _link(self._folder / source, target / name)
        return {name: self._entries[source] for source, name in names.items()}

    def moved(self, folder: Path, round: int, entries: Mapping[str, JSON]) -> None:
        """From now on the files are those of the checkpoint in ``folder``, to which clients' new ones are then added.

        Args:
            entries: name → sha256 and bytes of its files, as in its manifest.
        """
        self._folder, self._round, self._entries = folder, round, entries
        kept = [number for number in sorted(self._files) if pair(stem(number))[0] in entries]
        self._files = {number: self._files[number] for number in kept}

    def add(self, number: int, clients: Collection[int]) -> list[int]:
        """A file with states of ``clients``; those whose newest state is there (no later file has one)."""
        newest = [client for client in clients if self._home.get(client, -1) < number]
        for client in newest:
            old = self._files.get(self._home.get(client, -1))
            if old is not None:
                old.living.discard(client)
            self._home[client] = number
        self._files[number] = _File(len(clients), set(newest))
        return newest


def stem(number: int) -> str:
    """Name of a file of client states, without its endings."""
    return f"{STEM}{number:05d}"


def numbers(names: Iterable[str], start: str) -> list[int]:
    """The numbers in the names of files that begin so: 7 for ``clients-00007.json``."""
    found = (re.fullmatch(rf"{start}(\d+)\.json", name) for name in names)
    return [int(match[1]) for match in found if match]


def is_state_file(name: str) -> bool:
    """Whether a checkpoint writes files of this name: none that leads elsewhere, and no text of somebody's own."""
    return re.fullmatch(rf"(server|{SELECTION}|{EARLIER}[0-9]+|{STEM}[0-9]+)\.(json|safetensors)", name) is not None


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links, or with too many of this file
        shutil.copyfile(source, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())
