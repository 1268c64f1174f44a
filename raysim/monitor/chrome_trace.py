"""Writes a run's events as a Chrome trace: trace.json, for chrome://tracing and ui.perfetto.dev.

The format is the JSON object form of the "Trace Event Format": complete events ("X", times in µs) and metadata ("M").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from io import BufferedRandom
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.monitor.spans import gaps
from raysim.storage.atomic_files import write_atomically, writing
from raysim.storage.folder_files import is_there, open_file, read_bytes

if TYPE_CHECKING:
    from raysim.monitor.spans import SlotJob, Span

DRIVER_LANE = 0
"""Lane of the driver; slot i has lane i + 1."""
EVENTS = 1_000_000
"""Largest number of events: a trace ends with the round that reaches it, about 150 MB, as viewers take no more."""
_HEAD = '{"displayTimeUnit": "ms", "traceEvents": [\n'
_TAIL = "\n]}\n"


class Trace:
    """A trace file that grows by a round at a time and is valid JSON after each.

    Args:
        path: the file; one that is there (of a run that is resumed) goes on.
        limit: see EVENTS.
    """

    def __init__(self, path: Path, limit: int = EVENTS) -> None:
        self._path, self._limit = path, limit
        self._lanes = 0
        self._events = 0
        if is_there(path):
            with writing(path):
                content = read_bytes(path).decode(errors="replace")
            whole, end, _ = content.rpartition("}},\n" if not content.endswith(_TAIL) else _TAIL)
            if end != _TAIL:  # killed while it was writing
                write_atomically(path, ((whole + "}}" if end else _HEAD.rstrip()) + _TAIL).encode())
            self._events = whole.count("\n")  # one event a line

    def append(self, round: Span, spans: Sequence[Span], work: Sequence[SlotJob], slots: int) -> None:
        """Append the events of a round.

        Raises:
            ResultsError: the file cannot be written.
        """
        if self._events >= self._limit:
            return
        driver = (_event(span.name, span.stage, DRIVER_LANE, span.start, span.stop) for span in (round, *spans))
        events = [*self._new_lanes(slots), *driver, *_slot_events(round, work, slots)]
        lines = ",\n".join(json.dumps(event) for event in events)
        with writing(self._path):
            if not is_there(self._path):
                write_atomically(self._path, (_HEAD + lines + _TAIL).encode())
            else:
                with BufferedRandom(open_file(self._path, "r+b")) as file:
                    file.seek(-len(_TAIL), 2)
                    file.write((",\n" + lines + _TAIL).encode())
        self._events += len(events)

    def _new_lanes(self, slots: int) -> Iterator[dict[str, Any]]:
        names = ["driver", *(f"actor {slot}" for slot in range(slots))]
        if self._lanes == 0:
            yield _about("process_name", DRIVER_LANE, name="raysim")
        for lane in range(self._lanes, len(names)):
            yield _about("thread_name", lane, name=names[lane])
            yield _about("thread_sort_index", lane, sort_index=lane)
        self._lanes = max(self._lanes, len(names))


def _slot_events(round: Span, work: Sequence[SlotJob], slots: int) -> Iterator[dict[str, Any]]:
    for job in work:
        yield _event(job.label, job.stage, job.slot + 1, job.start, job.stop)
    for part in [*(part for job in work for part in job.parts), *gaps(round, work, slots)]:
        detail = {} if part.client is None else {"client": part.client}
        yield _event(part.phase, part.stage, part.slot + 1, part.start, part.stop, **detail)


def _event(name: str, category: str, lane: int, start: float, stop: float, **detail: Any) -> dict[str, Any]:
    # Ends are rounded, not lengths: what lies within another event then does so in the file too.
    begin, end = round(start * 1e6), round(stop * 1e6)
    times = {"ts": begin, "dur": max(0, end - begin)}
    return {"name": name, "cat": category, "ph": "X", "pid": 1, "tid": lane, **times, "args": detail}


def _about(what: str, lane: int, **content: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 1, "tid": lane, "args": content}
