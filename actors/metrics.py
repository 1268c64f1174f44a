"""Metrics of a run through ray.util.metrics: what ``monitoring/`` shows, and what any Prometheus can scrape from Ray.

Ray puts ``ray_`` before every name. The only label of raysim's own is ``run`` (the run folder's name), and ``phase`` on
seconds: a label value more is a time series more, so no client and no round is ever one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ray.util.metrics import Counter, Gauge

from raysim.engine.observer import ChunkReturned, Silent

_VALUES = {
    "round": "last whole round",
    "accuracy": "last measured test accuracy, 0 to 1",
    "client_accuracy_worst_decile": "mean accuracy of the worst tenth of the clients",
    "loss": "last measured test loss",
    "train_loss": "mean training loss of the last round",
    "slot_utilization": "share of the last round's training time in which slots were busy, 0 to 1",
}
"""Column of the rounds table → meaning; the metric is ``raysim_`` and the column."""
PHASES = ("train", "aggregate", "evaluate")


class Metrics(Silent):
    """Observer in the driver that reports to ray.util.metrics.

    Args:
        run: the run's name, the label of all its metrics.
    """

    def __init__(self, run: str) -> None:
        tags = {"run": run}
        self._gauges = {
            name: Gauge(f"raysim_{name}", text, ("run",)).set_default_tags(tags) for name, text in _VALUES.items()
        }
        self._phase = Gauge("raysim_phase_seconds", "seconds of a phase of the last round", ("run", "phase"))
        self._phase.set_default_tags(tags)
        self._gpu = Gauge("raysim_gpu_memory_bytes", "most GPU memory that one client actor has held", ("run",))
        self._gpu.set_default_tags(tags)
        self._counters = {
            name: Counter(f"raysim_{name}_total", text, ("run",)).set_default_tags(tags)
            for name, text in {
                "clients_done": "client tasks that gave an update",
                "clients_failed": "client tasks that failed and were left out",
                "clients_requeued": "client tasks sent again because what held them died",
                "bytes_down": "bytes of messages to clients",
                "bytes_up": "bytes of updates from clients",
            }.items()
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
        for phase in PHASES:
            self._phase.set(float(row[f"seconds_{phase}"]), {"phase": phase})
        self._count("bytes_down", row["bytes_down"])
        self._count("bytes_up", row["bytes_up"])

    def _count(self, name: str, more: float) -> None:
        if more > 0:  # Ray takes no 0: a counter of what never happened is absent, which the dashboard shows as 0
            self._counters[name].inc(more)
