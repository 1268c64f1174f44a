"""Claims on work that several processes could do, such as the cells of a study: a locked file each.

The system frees a lock however its process ends, so that the claim of a dead process is taken over at once. Processes
on several machines see each other's claims where their file system passes on locks.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from raysim.storage.atomic_files import write_whole, writing
from raysim.storage.folder_files import open_file
from raysim.storage.untrusted_files import UnreadableFileError, check_types, read_json

SECONDS = 0.2
"""Between two looks at a claim of another process."""
SILENCE = 5.0
"""Seconds that a wait for another process may take without a word."""


def claim_of(path: Path) -> Path:
    """The file that is a claim on making ``path``."""
    return path.with_name(f".{path.name}.claim")


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Hold the claim on making ``path`` while the block runs; False, at once, where another process has it.

    Raises:
        ResultsError: the folder cannot be written.
    """
    claim = claim_of(path)
    file = _locked(claim)
    if file is None:
        yield False
        return
    with file:
        try:
            yield True
        finally:
            claim.unlink(missing_ok=True)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process has the claim on ``path``, and hold it while the block runs.

    Who waits for longer than ``SILENCE`` is told once for which process.
    """
    began, told = time.monotonic(), False
    while True:
        with claimed(path) as mine:
            if mine:
                yield
                return
        time.sleep(SECONDS)
        if not told and time.monotonic() - began >= SILENCE:
            told = True
            print(f"waiting for {claimant(path)}, which is at work on {path}", file=sys.stderr)


def claimant(path: Path) -> str:
    """The process that has the claim on ``path``, in words."""
    try:
        found = read_json(claim_of(path))
        check_types(found, {"process": int, "host": str})
    except (OSError, UnreadableFileError):
        found = {}
    return f"process {found.get('process', '?')} on {found.get('host', '?')}"


def _locked(claim: Path) -> FileIO | None:
    """The claim's file, locked; None where another process has locked it."""
    with writing(claim):
        claim.parent.mkdir(parents=True, exist_ok=True)
        while True:
            file = open_file(claim, "ab")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                return None
            if _is(claim, file):
                file.truncate(0)
                write_whole(file, json.dumps({"process": os.getpid(), "host": socket.gethostname()}).encode())
                return file
            file.close()  # who had it took it away meanwhile


def _is(path: Path, file: FileIO) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False
