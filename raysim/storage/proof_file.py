"""``proof.jsonl``: a chain of digests, one line a round, that a run's folder can be checked against.

A line is a JSON object whose last entry is the chain's head after it: SHA-256 of the head before it (64 hexadecimal
digits, none before the first line) and of the line without its head. So the last head vouches for every line, and a
run that computed the same has the same head. docs/trust.md says what the lines hold.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from raysim.errors import DamagedError, DiskFullError
from raysim.storage.atomic_files import append_whole, write_atomically, writing
from raysim.storage.folder_files import is_there, open_file

PROOF_NAME = "proof.jsonl"
_LINE = re.compile(rb'(\{.*),"head":"([0-9a-f]{64})"\}\n')
NO_LINES: Mapping[str, Any] = {"lines": 0, "head": ""}
"""The mark of a proof that has not begun."""


@dataclass(frozen=True)
class Entry:
    """One line of a proof."""

    content: Mapping[str, Any]
    head: str
    """The chain's head after it."""


class ProofFile:
    """The chain of one run, which grows by a line a round and loses lines where the run goes back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: list[Entry] | None = None
        """Those in the file and those that wait; None until the file has been read."""
        self._held: list[bytes] = []
        """Lines for which there was no room yet."""

    @property
    def entries(self) -> Sequence[Entry]:
        """All lines, in order.

        Raises:
            DamagedError: the file is no such chain.
        """
        return self._read()

    @property
    def head(self) -> str:
        """The head of the whole chain; empty before the first line."""
        entries = self._read()
        return entries[-1].head if entries else ""

    def append(self, content: Mapping[str, Any]) -> None:
        """Append a line; while the disk is full it waits in memory."""
        entries = self._read()
        body = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        head = _head(self.head, body.encode())
        self._held.append(f'{body[:-1]},"head":"{head}"}}\n'.encode())
        entries.append(Entry(content, head))
        with suppress(DiskFullError):
            self.flush()

    def flush(self) -> None:
        """Write the lines that wait in memory.

        Raises:
            DiskFullError: there is still no room.
        """
        if self._held:
            with writing(self.path):
                append_whole(self.path, b"".join(self._held))
            self._held = []

    def mark(self) -> dict[str, Any]:
        """Sync all lines to the disk and return their number and their head, for a checkpoint.

        Raises:
            DiskFullError: there is no room.
        """
        self.flush()
        if self._read():
            with writing(self.path), open_file(self.path) as file:
                os.fsync(file.fileno())
        return {"lines": len(self._read()), "head": self.head}

    def check(self, mark: Mapping[str, Any]) -> None:
        """Compare the file with a mark. What comes after the marked lines may be anything: a kill leaves it.

        Raises:
            DamagedError: the lines are not those that were written.
        """
        found = read_proof(self.path, mark["lines"])
        if len(found) < mark["lines"]:
            raise DamagedError(f"damaged: {self.path}: it ends after {len(found)} of {mark['lines']} lines")
        if found and found[-1].head != mark["head"]:
            raise DamagedError(f"damaged: {self.path}: it is the chain of another run, or was made anew")

    def cut(self, mark: Mapping[str, Any]) -> None:
        """Cut the file, which agrees with a mark, to the lines that it had then; without any there is no file."""
        self._entries, self._held = None, []
        lines = b"".join(islice(_lines(self.path), mark["lines"]))
        if lines:
            write_atomically(self.path, lines)
        else:
            self.path.unlink(missing_ok=True)

    def _read(self) -> list[Entry]:
        if self._entries is None:
            self._entries = read_proof(self.path)
        return self._entries


def read_proof(path: Path, most: int | None = None, *, torn: bool = False) -> list[Entry]:
    """The lines of a chain, each checked against the one before it; none where there is no file.

    Args:
        most: read no more lines than this; None: all.
        torn: leave out a last line without its end, as a kill leaves it.

    Raises:
        DamagedError: a line is no such line, or does not follow the one before it.
    """
    found: list[Entry] = []
    head = ""
    try:
        for place, line in enumerate(islice(_lines(path), most), start=1):
            if torn and not line.endswith(b"\n"):
                break
            match = _LINE.fullmatch(line)
            body = match[1] + b"}" if match else b""
            if match is None or _head(head, body) != match[2].decode():
                raise DamagedError(f"damaged: {path}: line {place} does not follow the lines before it (SHA-256)")
            content = json.loads(body)
            if not isinstance(content, dict):
                raise ValueError("it holds no object")
            head = match[2].decode()
            found.append(Entry(content, head))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"damaged: {path}: line {len(found) + 1}: {error}") from error
    return found


def _head(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + body).hexdigest()


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of the file; the last one may lack its end."""
    if is_there(path):
        with io.BufferedReader(open_file(path)) as file:
            yield from file
