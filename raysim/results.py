"""A run's folder: its config, tables of rounds and clients, log and summary.

The tables grow as CSV, one line a row, so that a kill costs at most the line it was writing; Parquet comes at the end.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.environment import environment as environment  # part of what a run's folder records
from raysim.errors import ResultsError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TIMING_COLUMNS = ("clients_per_second", "slot_utilisation", "started")  # and whatever starts with "seconds_"
_DERIVED = ("summary.json", "rounds.parquet", "clients.parquet")

LOCK_SECONDS = 10.0

Row = Mapping[str, Any]


@dataclass(frozen=True)
class RunResult:
    """What a run has left: pandas frames of rounds and clients, the config and the summary (empty until the end)."""

    folder: Path
    config: dict[str, Any]
    rounds: DataFrame
    clients: DataFrame
    summary: dict[str, Any]


class RunFolder:
    """Writes and reads one run's folder; made through ``create`` or ``open``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self._rounds = _Table(path / "rounds.csv")
        self._clients = _Table(path / "clients.csv")
        self._profile = _Table(path / "profile.csv")

    @classmethod
    def create(cls, path: Path, config_yaml: str, environment: Mapping[str, Any]) -> RunFolder:
        """A new run in ``path``, which may exist but must be empty.

        Raises:
            ResultsError: there is a run already, or something else, or the folder cannot be written.
        """
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            found = sorted(entry.name for entry in path.iterdir())
            if not found:
                write_atomically(path / "environment.json", _json(environment))
                # Last, because it is what makes the folder a run; exclusive, so that of two processes one wins.
                try:
                    with (path / "config.yaml").open("x", encoding="utf-8") as file:
                        file.write(config_yaml)
                    return cls(path)
                except FileExistsError:
                    found = ["config.yaml"]
        if "config.yaml" in found:
            raise ResultsError(
                f"{path} already holds a run. Go on with it through --resume {path}, or choose another folder."
            )
        # Not even beside foreign files: a run that fails at once takes its folder back, whole.
        raise ResultsError(f"{path} is not empty (it holds {found[0]}). Choose a new or an empty folder for the run.")

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The run in ``path``.

        Raises:
            ResultsError: it is none; the message says what is missing.
        """
        if not path.is_dir():
            raise ResultsError(f"{path} is no run folder: there is no such directory.")
        if not (path / "config.yaml").is_file():
            raise ResultsError(f"{path} is no run folder: config.yaml is missing. Give the folder a run has written.")
        return cls(path)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """While this process is at work on the run no other one may be.

        Raises:
            ResultsError: another process is, and still was after a few seconds (one that was killed lets go by then).
        """
        with (self.path / ".lock").open("w") as file:
            deadline = time.monotonic() + LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the system frees it when a process dies
                    break
                except BlockingIOError as error:
                    if time.monotonic() > deadline:
                        raise ResultsError(
                            f"{self.path}: another process is at work on this run; wait for it or stop it first"
                        ) from error
                    time.sleep(0.1)
            yield

    def append_round(self, row: Row) -> None:
        """One row more in rounds.csv; on its way to the disk when this returns."""
        self._rounds.append([row])

    def append_clients(self, rows: Iterable[Row]) -> None:
        """Rows more in clients.csv. The first row fixes the columns; a later new one is added for all rows."""
        self._clients.append(list(rows))

    def append_profile(self, rows: Iterable[Row]) -> None:
        """Rows more in profile.csv, which only a run with ``engine.profile`` has."""
        self._profile.append(list(rows))

    def truncate(self, last_round: int) -> None:
        """Drops what a resumed run will write again: rows after ``last_round``, half-written lines, and the summary and
        Parquet files, which describe the run as it was."""
        for table in (self._rounds, self._clients, self._profile):
            table.truncate(last_round)
        with writing(self.path):
            for name in _DERIVED:
                (self.path / name).unlink(missing_ok=True)

    def rounds(self) -> DataFrame:
        """One row a round."""
        return self._rounds.frame()

    def clients(self) -> DataFrame:
        """One row for each client and round in which it took part."""
        return self._clients.frame()

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Writes rounds.parquet and clients.parquet, then summary.json, each at once or not at all."""
        for name, frame in (("rounds", self.rounds()), ("clients", self.clients())):
            buffer = io.BytesIO()
            frame.to_parquet(buffer, index=False)
            write_atomically(self.path / f"{name}.parquet", buffer.getvalue())
        write_atomically(self.path / "summary.json", _json(summary))

    def log(self, text: str) -> None:
        """Appends to run.log, with the time (UTC)."""
        with writing(self.path), (self.path / "run.log").open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {text}\n")


class _Table:
    """A CSV file in which every row is one line, so that a torn row is seen by its missing line end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] | None = None

    def append(self, rows: list[Row]) -> None:
        if not rows:
            return
        if self._columns is None:
            self._columns = self._header()
        new = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in self._columns]
        with writing(self.path):
            if new:
                self._widen(new)
            with self.path.open("a", encoding="utf-8", newline="") as file:
                file.write(_text([row.get(name) for name in self._columns] for row in rows))

    def truncate(self, last_round: int) -> None:
        self._columns = None
        columns = self._header()
        if not columns:
            self.path.unlink(missing_ok=True)
            return
        position = columns.index("round")
        kept = [line for line in self._lines() if int(next(csv.reader([line]))[position]) <= last_round]
        self._rewrite(_line(columns), kept)

    def frame(self) -> DataFrame:
        import pandas

        columns = self._header()
        if not columns:
            return pandas.DataFrame()
        text = io.StringIO(_line(columns) + "".join(self._lines()))
        frame = pandas.read_csv(text, dtype=str, keep_default_na=False)
        return pandas.DataFrame({name: frame[name] if name == "name" else _typed(frame[name]) for name in columns})

    def _header(self) -> list[str]:
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            first = file.readline()
        return next(csv.reader([first])) if first.endswith("\n") else []

    def _lines(self) -> Iterator[str]:
        """Whole lines after the header."""
        with self.path.open(encoding="utf-8", newline="\n") as file:
            next(file)
            yield from (line for line in file if line.endswith("\n"))

    def _widen(self, new: list[str]) -> None:
        old = self._columns or []
        lines = [line[:-1] + "," * len(new) + "\n" for line in self._lines()] if old else []
        self._columns = old + new
        self._rewrite(_line(self._columns), lines)

    def _rewrite(self, header: str, lines: Iterable[str]) -> None:
        write_atomically(self.path, (header + "".join(lines)).encode())


def _typed(cells: Series[str]) -> Any:
    """Integers, else floats, else text. By numpy rather than ``read_csv``, whose floats may be off by the last bit."""
    missing = cells == ""
    filled = cells.mask(missing, "nan").to_numpy(dtype=str)
    for kind in (np.int64, np.float64):
        try:
            return filled.astype(kind)
        except (ValueError, OverflowError):
            continue
    return cells.mask(missing)


def _line(values: Iterable[Any]) -> str:
    return _text([values])


def _text(rows: Iterable[Iterable[Any]]) -> str:
    """One line a row."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.splitlines())
    return value.item() if isinstance(value, np.generic) else value  # Python's own type, whose repr keeps every bit


def new_run_path(root: Path, method: str, workload: str, seed: int) -> Path:
    """A path that is not yet taken, such as ``runs/fedrad-digits-seed0-20261120-221530`` (UTC); nothing is made."""
    stem = f"{method}-{workload}-seed{seed}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    path, attempt = root / stem, 1
    while path.exists():
        attempt += 1
        path = root / f"{stem}-{attempt}"
    return path


def load_result(path: Path) -> RunResult:
    """Reads a run folder, finished or not.

    Raises:
        ResultsError: it is none, or its config or summary cannot be read.
    """
    import yaml

    folder = RunFolder.open(path)
    try:
        config = yaml.safe_load((path / "config.yaml").read_text(encoding="utf-8"))
        summary_path = path / "summary.json"
        summary = json.loads(summary_path.read_text(encoding="utf-8")) if summary_path.exists() else {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ResultsError(f"Cannot read the run in {path}: {error}") from error
    return RunResult(path, config, folder.rounds(), folder.clients(), summary)


def comparable(frame: DataFrame) -> DataFrame:
    """The frame without the columns that hold times and rates: what two runs of one config must share bit for bit."""
    timing = [name for name in frame.columns if name in TIMING_COLUMNS or name.startswith("seconds_")]
    return frame.drop(columns=timing)


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(_plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    """As JSON every reader takes: numpy's numbers as Python's, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(child) for child in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_atomically(path: Path, data: bytes) -> None:
    """The whole file or, after a kill or on a full disk, the one that was there before."""
    partial = path.with_name(path.name + ".partial")
    with writing(path):
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns what the system says about a file into a ResultsError that says what to do."""
    try:
        yield
    except OSError as error:
        raise ResultsError(
            f"Cannot write {path}: {error.strerror or error}. Free space there or choose a folder that can be written; "
            "a run that was going on continues from its last checkpoint with --resume."
        ) from error
