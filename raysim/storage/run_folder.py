"""A run's folder: its config, tables of rounds and clients, log and summary.

The tables grow as CSV, one line a row, so that a kill costs at most the line it was writing; Parquet comes at the end.
"""

from __future__ import annotations

import errno
import io
import json
import math
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.errors import DiskFullError, ResultsError
from raysim.storage.atomic_files import (
    append_whole,
    check_folder,
    sync_directory,
    unused,
    write_atomically,
    write_new,
    writing,
)
from raysim.storage.csv_table import Row, Table
from raysim.storage.environment import environment as environment  # part of what a run's folder records
from raysim.storage.folder_files import check_links, harmless
from raysim.storage.proof_file import NO_LINES, PROOF_NAME, ProofFile
from raysim.storage.table_marks import NO_ROWS
from raysim.storage.untrusted_files import UnreadableFileError, read_json

if TYPE_CHECKING:
    from pandas import DataFrame

_EXISTED = "folder_existed"
"""In environment.json: the run was given an empty folder, which it leaves where it comes to nothing."""
_DERIVED = ("summary.json", "rounds.parquet", "clients.parquet", "model.safetensors", "report.html", "curve.png")


class RunFolder:
    """Writes and reads one run's folder; made through ``create`` or ``open``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self._rounds = Table(path / "rounds.csv")
        self._clients = Table(path / "clients.csv")
        self._profile = Table(path / "profile.csv")
        self.proof = ProofFile(path / PROOF_NAME)

    @classmethod
    def create(cls, path: Path, config_yaml: str, environment: Mapping[str, Any]) -> RunFolder:
        """A new run in ``path``, which may exist but must be empty.

        Raises:
            ResultsError: there is a run already, or something else, or the folder cannot be written.
        """
        check_free(path)
        existed = path.is_dir()
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            facts = {**environment, _EXISTED: True} if existed else environment
            try:
                write_atomically(path / "environment.json", json_bytes(facts))
                # Last, because it is what makes the folder a run.
                if write_new(path / "config.yaml", config_yaml.encode()):
                    sync_directory(path)
                    return cls(path)
            except (OSError, ResultsError):  # the disk is full: what has been written goes
                if not is_run(path):
                    (path / "environment.json").unlink(missing_ok=True)
                    if not existed:
                        with suppress(OSError):
                            path.rmdir()
                raise
        raise _occupied(path, ["config.yaml"])  # another process was faster

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The run in ``path``.

        Raises:
            ResultsError: it is none, or there is a link in it; the message says what is missing.
        """
        if not path.is_dir():
            raise ResultsError(f"{path} is no run folder: there is no such directory.")
        check_links(path)
        if not is_run(path):
            raise ResultsError(f"{path} is no run folder: config.yaml is missing. Give the folder a run has written.")
        return cls(path)

    def append_round(self, row: Row) -> None:
        """Append a row to rounds.csv, which waits in memory while the disk is full."""
        self._rounds.append([row])

    def append_clients(self, rows: Iterable[Row]) -> None:
        """Append rows to clients.csv. The first row fixes the columns; a later new one is added for all rows."""
        self._clients.append(list(rows))

    def append_profile(self, rows: Iterable[Row]) -> None:
        """Append rows to profile.csv, which only a run with ``engine.profile`` has."""
        self._profile.append(list(rows))

    def flush(self) -> None:
        """Write the rows that wait in memory since the disk was full.

        Raises:
            DiskFullError: the disk is still full; the rows go on waiting.
        """
        for file in (self._rounds, self._clients, self._profile, self.proof):
            file.flush()

    def marks(self) -> dict[str, Any]:
        """Sync rounds.csv, clients.csv and proof.jsonl to the disk and return their marks, for a checkpoint.

        Raises:
            DiskFullError: there is no room.
        """
        self.flush()
        marks = {file.path.name: file.mark() for file in (self._rounds, self._clients, self.proof)}
        with writing(self.path):
            sync_directory(self.path)
        return marks

    def check(self, marks: Mapping[str, Any]) -> None:
        """Compare the tables and the proof with a checkpoint's marks.

        Raises:
            DamagedError: a file is not what was written.
        """
        for table in (self._rounds, self._clients):
            table.check(marks[table.path.name])
        self.proof.check(marks.get(PROOF_NAME, NO_LINES))  # runs of earlier versions have no proof

    def go_back(self, last_round: int, marks: Mapping[str, Any]) -> None:
        """Cut the tables and the proof, which agree with these marks, to what they were after ``last_round``.

        The summary, the Parquet files, the model, the page and the picture, which describe the run as it was, go.

        Args:
            marks: by the tables' names; one that has none loses all rows.
        """
        for table in (self._rounds, self._clients):
            table.cut(marks.get(table.path.name, NO_ROWS))
        self.proof.cut(marks.get(PROOF_NAME, NO_LINES))
        self._profile.truncate(last_round)
        with writing(self.path):
            for name in _DERIVED:
                (self.path / name).unlink(missing_ok=True)

    def finished(self) -> bool:
        """Whether the run has a summary."""
        return (self.path / "summary.json").exists()

    def rounds_written(self) -> int:
        """Number of whole rows in rounds.csv, readable or not."""
        return self._rounds.whole_rows()

    def rounds(self) -> DataFrame:
        """The rounds table: one row per round."""
        return self._rounds.frame()

    def clients(self) -> DataFrame:
        """The clients table: one row per client and round in which it took part."""
        return self._clients.frame()

    def finish(self, summary: Mapping[str, Any], rounds: DataFrame | None = None) -> None:
        """Write rounds.parquet and clients.parquet, then summary.json, each at once or not at all.

        Args:
            rounds: the table of rounds, where it has been read.
        """
        for name, frame in (("rounds", self.rounds() if rounds is None else rounds), ("clients", self.clients())):
            buffer = io.BytesIO()
            frame.to_parquet(buffer, index=False)
            write_atomically(self.path / f"{name}.parquet", buffer.getvalue())
        write_atomically(self.path / "summary.json", json_bytes(summary))

    def log(self, text: str) -> None:
        """Append a line with the time (UTC) to run.log; a full disk drops the line, not the run.

        What a terminal or a shell would take for a command in it, as names from files may hold, is written out.
        """
        line = f"{datetime.now(UTC).isoformat(timespec='seconds')} {harmless(text)}\n"
        with suppress(DiskFullError), writing(self.path):
            append_whole(self.path / "run.log", line.encode())


def check_free(path: Path) -> None:
    """Check that a new run can have this folder, which may exist but must be empty.

    Raises:
        ResultsError: there is a run already, or something else, or the folder cannot be read.
    """
    _check_name(path)
    check_folder(path)
    with writing(path):
        found = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []
    if found:
        raise _occupied(path, found)


def _occupied(path: Path, found: Sequence[str]) -> ResultsError:
    if "config.yaml" in found:
        return ResultsError(
            f"{path} already holds a run. Go on with it through --resume {path}, or choose another folder."
        )
    # Not even beside foreign files: a run that fails at once takes its folder back, whole.
    return ResultsError(f"{path} is not empty (it holds {found[0]}). Choose a new or an empty folder for the run.")


def _check_name(path: Path) -> None:
    """Check that a folder can have this name before anything is made of it.

    Raises:
        ResultsError: it cannot, or files that name it could not be written as UTF-8.
    """
    try:
        str(path).encode()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            path.lstat()
    except (ValueError, OSError) as error:
        reason = {errno.ENAMETOOLONG: "it is too long"}.get(getattr(error, "errno", 0), "") or (
            "it is not UTF-8" if isinstance(error, UnicodeError) else str(error)
        )
        shown = ascii(str(path))
        shown = shown if len(shown) < 80 else f"{shown[:80]}…"
        raise ResultsError(f"output: {shown} is no name for a folder: {reason}. Choose another.") from error


def new_run_path(root: Path, method: str, data: str, seed: int) -> Path:
    """A path that is not yet taken, such as ``runs/fedrad-digits-seed0-20261120-221530`` (UTC); nothing is made."""
    # Of a user's own, package.module:Class: a colon is no part of a file's name elsewhere, and separates paths here.
    names = (re.sub(r"[^\w.+-]+", "-", name)[:60].strip("-.") for name in (method, data))
    return unused(root / f"{'-'.join(filter(None, names))}-seed{seed}-{datetime.now(UTC):%Y%m%d-%H%M%S}")


def is_run(path: Path) -> bool:
    """Whether a folder holds a run."""
    return (path / "config.yaml").is_file()


def take_back(path: Path) -> None:
    """Remove what a run that came to nothing has left, and its folder unless that was there before the run.

    An empty folder stays: it was there before a run that has been taken back already.
    """
    try:
        existed = read_json(path / "environment.json").get(_EXISTED) is True
    except (OSError, UnreadableFileError, AttributeError):
        existed = path.is_dir() and not any(path.iterdir())
    if not existed:
        shutil.rmtree(path, ignore_errors=True)
        return
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with suppress(OSError):
                entry.unlink()


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """Facts as the JSON files of a run's folder have them."""
    return (json.dumps(plain_json(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def plain_json(value: Any) -> Any:
    """A value as standard JSON has it: numpy's numbers as Python's, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): plain_json(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(child) for child in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
