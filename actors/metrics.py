"""Metrics of a run through ray.util.metrics: what ``monitoring/`` shows, and what any Prometheus can scrape from Ray.

Ray puts ``ray_`` before every name. The only label of raysim's own is ``run`` (the run folder's name), and ``phase`` on
seconds: a label value more is a time series more, so no client and no round is ever one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ray.util.metrics import Counter, Gauge

from raysim import columns
from raysim.columns import Column
from raysim.engine.observer import ChunkReturned, Silent

TASKS = {
    "clients_done": "client tasks that gave an update",
    "clients_failed": "client tasks that failed and were left out",
    "clients_requeued": "client tasks sent again because what held them died",
}
"""Counters of client tasks → meaning; the metric of a column of the rounds table is ``raysim_`` and the column."""


def _columns(kind: str) -> dict[str, Column]:
    """The columns of the rounds table that are metrics of a kind."""
    return {name: column for name, column in columns.shown("metric") if column.metric == kind}


class Metrics(Silent):
    """Observer in the driver that reports to ray.util.metrics.

    Args:
        run: the run's name, the label of all its metrics.
    """

    def __init__(self, run: str) -> None:
        tags = {"run": run}
        self._gauges = {
            name: Gauge(f"raysim_{name}", column.help, ("run",)).set_default_tags(tags)
            for name, column in _columns("gauge").items()
        }
        self._phase = Gauge("raysim_phase_seconds", "seconds of a phase of the last round", ("run", "phase"))
        self._phase.set_default_tags(tags)
        self._gpu = Gauge("raysim_gpu_memory_bytes", "most GPU memory that one client actor has held", ("run",))
        self._gpu.set_default_tags(tags)
        self._counters = {
            name: Counter(f"raysim_{name}_total", text, ("run",)).set_default_tags(tags)
            for name, text in (TASKS | {name: column.help for name, column in _columns("counter").items()}).items()
        }
        self._most_gpu = 0
        self._gpu.set(0)

    def chunk_returned(self, chunk: ChunkReturned) -> None:
        failed = len(chunk.failed)
        self._count("clients_done", len(chunk.clients) - failed)
        self._count("clients_failed", failed)
        self._count("clients_requeued", len(chunk.clients) * (chunk.sends - 1))
        if chunk.seat.gpu_bytes > self._most_gpu:
            self._most_gpu = chunk.seat.gpu_bytes
            self._gpu.set(self._most_gpu)

    def round_finished(self, row: Mapping[str, Any]) -> None:
        for name, gauge in self._gauges.items():
            value = float(row.get(name, math.nan))
            if math.isfinite(value):  # not every round is evaluated: the last known value stays
                gauge.set(value)
        for name in _columns("phase"):
            self._phase.set(float(row[name]), {"phase": name.removeprefix("seconds_")})
        for name in _columns("counter"):
            self._count(name, row[name])

    def _count(self, name: str, more: float) -> None:
        if more > 0:  # Ray takes no 0: a counter of what never happened is absent, which the dashboard shows as 0
            self._counters[name].inc(more)
