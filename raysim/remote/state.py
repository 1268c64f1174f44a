"""States of a remote run folder: which files belong to it, and the digests of their blocks.

A file is stored as blocks of one size, each an object named by its SHA-256, so that a table that grows sends its last
block alone and nothing that a state names is ever written over. A state is one object, written after all of its blocks
and with a checksum of its own: what a cut connection leaves behind is no state, and the one before still stands.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from raysim.errors import DamagedError, ResultsError
from raysim.remote.store import Store

BLOCK_BYTES = 2**22
"""Size of all blocks of a file but the last."""
BLOCKS, STATES = "files", "states"
MAX_STATE_BYTES = 2**26
MAX_FILES = 100_000
_FORMAT = 1
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STATE = re.compile(r"(\d{8})-([0-9a-f]{16})\.json")
_PART = re.compile(r"(?!\.)[^/\\\x00-\x1f\x7f]{1,255}")
_DEPTH = 8
ALLOWED = (
    f"at most {MAX_FILES:,} files, at most {_DEPTH} names deep, no name with a backslash or a control character, none "
    "that begins with a dot or is longer than 255 characters"
)
"""The files that a state may hold, in words."""


@dataclass(frozen=True)
class StoredFile:
    """A file of a run's folder as it is stored."""

    name: str
    """Path in the folder, with slashes."""
    bytes: int
    blocks: tuple[str, ...]
    """SHA-256 of each block, in order."""

    def sizes(self) -> dict[str, int]:
        """Bytes of each block, by digest."""
        last = self.bytes - BLOCK_BYTES * (len(self.blocks) - 1)
        return dict.fromkeys(self.blocks[:-1], BLOCK_BYTES) | dict.fromkeys(self.blocks[-1:], last)


@dataclass(frozen=True)
class State:
    """A run's folder at one moment, as its ``number``-th state."""

    number: int
    writer: str
    """Random name of the process that wrote it, 16 hexadecimal digits."""
    rounds: int
    """How many rows rounds.csv had at least."""
    files: tuple[StoredFile, ...]

    @property
    def name(self) -> str:
        """Name of its object in the folder of states: those of two writers differ."""
        return f"{self.number:08d}-{self.writer}.json"

    def blocks(self) -> dict[str, int]:
        """Bytes of all blocks that it names, by digest."""
        return {digest: size for file in self.files for digest, size in file.sizes().items()}

    def encoded(self) -> bytes:
        """The content of its object."""
        content = {"format": _FORMAT, **asdict(self)}
        return json.dumps(content | {"sha256": _checksum(content)}).encode()


def decoded(data: bytes, name: str) -> State:
    """A state from its object, which may be anybody's.

    Raises:
        ValueError: it is not whole, or nothing that raysim has written.
    """
    try:
        content = json.loads(data)
        if content.pop("sha256") != _checksum(content) or content["format"] != _FORMAT:
            raise ValueError("it has changed since it was written, or is of another version")
        names = [entry["name"] for entry in content["files"]]
        if storable(names) != names:
            raise ValueError(f"it names files that none can hold; allowed: {ALLOWED}")
        files = tuple(_file(entry) for entry in content["files"])
        state = State(int(content["number"]), str(content["writer"]), int(content["rounds"]), files)
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"it is no state of a run's folder ({type(error).__name__})") from error
    if state.name != name or len(set(names)) < len(names):
        raise ValueError("it names a file twice, or another state")
    return state


def storable(names: Iterable[str]) -> list[str]:
    """Those files that a state may hold: a writer leaves the others out, a reader refuses a state that names others."""
    return [name for name in names if _is_storable(name)][:MAX_FILES]


def state_names(store: Store) -> list[str]:
    """Names of the states' objects, the newest first."""
    return sorted((name for name in store.names(STATES) if _STATE.fullmatch(name)), reverse=True)


def whole_states(store: Store) -> list[State]:
    """The whole states, the newest last; empty where there is none at all.

    Raises:
        DamagedError: there are some, and none is whole.
        UnreachableError: the remote side does not answer.
    """
    names = state_names(store)
    stored = store.names(BLOCKS) if names else {}
    found: list[State] = []
    reasons = []
    for name in reversed(names):
        try:
            state = decoded(store.get(f"{STATES}/{name}", MAX_STATE_BYTES), name)
        except (ValueError, ResultsError, FileNotFoundError) as error:
            reasons.append(f"{name}: {error}")
            continue
        if missing := missing_blocks(state.blocks(), stored):
            reasons.append(f"{name}: {len(missing)} of its blocks are missing")
            continue
        found.append(state)
    if reasons and not found:
        raise DamagedError(f"{store.address} holds no whole state of a run ({'; '.join(reasons[-3:])}).")
    return found


def missing_blocks(wanted: Mapping[str, int], stored: Mapping[str, int]) -> list[str]:
    """Digests of blocks that are not stored whole."""
    return [digest for digest, size in wanted.items() if stored.get(digest) != size]


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _is_storable(name: str) -> bool:
    parts = name.split("/")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:  # no file of this machine can have it
        return False
    return len(parts) <= _DEPTH and all(_PART.fullmatch(part) for part in parts)


def _file(entry: Any) -> StoredFile:
    name, size, blocks = entry["name"], entry["bytes"], entry["blocks"]
    if type(size) is not int or not 0 <= size <= 2**50 or len(blocks) != -(-size // BLOCK_BYTES):
        raise ValueError(f"{name}: {len(blocks)} blocks are not {size!a} bytes")
    if not all(_DIGEST.fullmatch(digest) for digest in blocks):
        raise ValueError(f"{name}: a block has no SHA-256")
    return StoredFile(name, size, tuple(blocks))
