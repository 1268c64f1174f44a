"""``status.json`` of a run's folder: what goes on just now, who is still out, where clients run, what was lost.

The tables say what every whole round gave; this file says the rest, for the live page (:mod:`raysim.ui`). It is small
whatever the run's length and number of clients, is replaced whole, and nothing of the run ever reads it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from raysim.engine.observer import ChunkReturned, Silent
from raysim.errors import ResultsError
from raysim.storage.atomic_files import write_atomically
from raysim.storage.run_record import read_facts
from raysim.storage.untrusted_files import UnreadableFileError, check_types

NAME = "status.json"
FAULTS = 100
"""Number of newest faults that are kept; run.log has all."""
OUT = 48
"""Largest number of unfinished clients that are named."""
LOST = 200
"""Clients with lost tasks that are named."""
COUNTS = ("done", "failed", "requeued", "faults")
LATEST = 253_402_300_800
"""Seconds from 1970 to the year 10000, up to which there is a date."""
PAUSE = 0.4
"""Least number of seconds between two writes of the file."""

_NUMBER = (int, float)
_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("state", "message", "plan"), str),
    **dict.fromkeys(("started", "updated", "round", "rounds", "epochs", "out_count"), _NUMBER),
    **dict.fromkeys(("counts", "lost"), dict),
    **dict.fromkeys(("faults", "slots", "out"), list),
    **dict.fromkeys(("preparing", "current"), (dict, type(None))),
}
_ENTRIES: Mapping[str, Mapping[str, Any]] = {
    "faults": {"time": _NUMBER, "round": _NUMBER, "text": str},
    "slots": {
        **dict.fromkeys(("slot", "process", "tasks", "lives"), int),
        **dict.fromkeys(("node", "device"), str),
        **{"busy": _NUMBER, "last": list},
    },
    "preparing": {"label": str, "done": _NUMBER, "total": _NUMBER},
    "current": dict.fromkeys(("local_epochs", "participants", "done", "started"), _NUMBER),
}
"""Keys that every section in a list has, or the section itself where it is no list; and their types."""
_BESIDE: Mapping[str, Sequence[str]] = {"slots": ("started", "updated"), "current": ("round",)}
"""Keys that the file has beside some others, where these are not empty: the page shows both together."""

State = Literal["preparing", "running", "finished", "stopped", "failed"]
LIVE = ("preparing", "running")


class Recorder(Silent):
    """An observer that keeps ``status.json``; a context manager in the process that drives the run.

    Args:
        folder: the run's. What an earlier process wrote about faults is carried on.
        intervals: local epochs of every round that is to be in the end.

    A file that cannot be written is left as it is: it is no reason to lose a run.
    """

    def __init__(self, folder: Path, intervals: Sequence[int] = ()) -> None:
        self._path = folder / NAME
        before = read(folder)
        self._status: dict[str, Any] = {
            "state": "preparing",
            "message": "",
            "started": time.time(),
            "round": 0,
            "rounds": len(intervals),
            "epochs": sum(intervals),
            "counts": {name: before.get("counts", {}).get(name, 0) for name in COUNTS},
            "faults": before.get("faults", []),
            "plan": "",
            "preparing": None,
            "current": None,
        }
        self._lost = Counter({int(client): times for client, times in before.get("lost", {}).items()})
        self._slots: dict[int, dict[str, Any]] = {}
        self._out: set[int] = set()
        self._lock, self._changed, self._closed = threading.Lock(), threading.Event(), threading.Event()
        self._writer = threading.Thread(target=self._keep_writing, name="status", daemon=True)
        if before.get("state") in LIVE:  # it had no time to say how it ended
            self._status["round"] = before.get("round", 0)
            self.fault("the process that drove this run died; it goes on from the last checkpoint")

    def __enter__(self) -> Recorder:
        self._writer.start()
        self._changed.set()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            with self._lock:
                self._status["state"] = "failed" if issubclass(kind, Exception) else "stopped"
                self._status["message"] = str(error) if issubclass(kind, Exception) else ""
        self._closed.set()
        self._changed.set()
        self._writer.join()

    def begins(self) -> None:
        """Note that the data is loaded and the client actors are placed."""
        with self._lock:
            self._status |= {"state": "running", "preparing": None}
        self._changed.set()

    def placed(self, plan: str) -> None:
        with self._lock:
            self._status["plan"] = plan
        self._changed.set()

    def ends(self, state: State) -> None:
        with self._lock:
            self._status |= {"state": state, "current": None}
            self._out.clear()

    def fault(self, text: str) -> None:
        with self._lock:
            entry = {"time": time.time(), "round": self._status["round"], "text": text}
            self._status["faults"] = [*self._status["faults"], entry][-FAULTS:]
            self._status["counts"]["faults"] += 1
        self._changed.set()

    def preparing(self, label: str, done: int, total: int) -> None:
        with self._lock:
            self._status["preparing"] = {"label": label, "done": done, "total": total} if done < total else None
        self._changed.set()

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        with self._lock:
            self._status["round"] = round
            self._status["current"] = {
                "local_epochs": local_epochs,
                "participants": participants,
                "done": 0,
                "started": time.time(),
            }
        self._changed.set()

    def tasks_started(self, clients: Sequence[int]) -> None:
        with self._lock:
            self._out = set(clients)

    def chunk_returned(self, chunk: ChunkReturned) -> None:
        with self._lock:
            self._out.difference_update(chunk.clients)
            counts, failed = self._status["counts"], len(chunk.failed)
            counts["done"] += len(chunk.clients) - failed
            counts["failed"] += failed
            counts["requeued"] += len(chunk.clients) * (chunk.sends - 1)
            self._lost.update(chunk.failed)
            for client in chunk.clients if chunk.sends > 1 else ():
                self._lost[client] += chunk.sends - 1
            if self._status["current"] is not None:
                self._status["current"]["done"] += len(chunk.clients)
            seat = chunk.seat
            slot = self._slots.setdefault(seat.slot, {"tasks": 0, "busy": 0.0, "lives": 0, "process": None})
            slot["lives"] += slot["process"] != seat.process
            slot["tasks"] += len(chunk.clients)
            slot["busy"] += chunk.seconds
            slot |= {
                "node": seat.node,
                "process": seat.process,
                "device": seat.device,
                "gpu_bytes": seat.gpu_bytes,
                "last": chunk.clients[:4],
                "seen": time.time(),
            }
        self._changed.set()

    def _keep_writing(self) -> None:
        """Write the file from a thread, so that the last event is on the disk soon even if none follows."""
        while not self._closed.is_set():
            self._changed.wait()
            self._changed.clear()
            self._write()
            self._closed.wait(PAUSE)
        self._write()

    def _write(self) -> None:
        with self._lock:
            out = sorted(self._out)
            status = self._status | {
                "updated": time.time(),
                "out": out[:OUT],
                "out_count": len(out),
                "lost": dict(self._lost.most_common(LOST)),
                "slots": [{"slot": place} | slot for place, slot in sorted(self._slots.items())],
            }
            text = json.dumps(status)
        with suppress(ResultsError):  # no run depends on it
            write_atomically(self._path, text.encode(), durable=False)


def read(folder: Path) -> dict[str, Any]:
    """Read the status of a run; empty if it has none or it cannot be read, as no run depends on it."""
    try:
        return load(folder)
    except ResultsError:
        return {}


def load(folder: Path) -> dict[str, Any]:
    """Read the status of a run; empty if it has none.

    Raises:
        ResultsError: it cannot be read as one.
    """
    return read_facts(folder, NAME, _check)


def _check(found: dict[str, Any]) -> None:
    check_types(found, _TYPES)
    for name in ("counts", "lost"):
        numbers = found.get(name, {})
        check_types(numbers, dict.fromkeys(numbers, int))
    if not all(client.isdecimal() and len(client) < 19 for client in found.get("lost", {})):
        raise UnreadableFileError("lost names a client that is no number")
    for name, expected in _ENTRIES.items():
        entries = found.get(name) or []
        for entry in entries if isinstance(entries, list) else [entries]:
            if not isinstance(entry, dict):
                raise UnreadableFileError(f"{name} holds something else than sections")
            _check_there(name, entry, expected)
            check_types(entry, {"gpu_bytes": _NUMBER, **expected})  # which a slot without a GPU need not have
        if entries:
            _check_there("it", found, _BESIDE.get(name, ()))
    for fault in found.get("faults", []):
        if not 0 <= fault["time"] < LATEST:
            raise UnreadableFileError(f"faults holds a time that is no moment: {fault['time']:.4g}")


def _check_there(where: str, found: Mapping[str, Any], names: Iterable[str]) -> None:
    missing = [name for name in names if name not in found]
    if missing:
        raise UnreadableFileError(f"{where} holds no {missing[0]}")


def settle(folder: Path, state: str, message: str) -> None:
    """Write how a run ended, where its driver could not."""
    found = read(folder)
    if (found.get("state"), found.get("message")) == (state, message):
        return
    now = time.time()
    text = json.dumps({"started": now} | found | {"state": state, "message": message, "current": None, "updated": now})
    with suppress(ResultsError):
        write_atomically(folder / NAME, text.encode(), durable=False)
