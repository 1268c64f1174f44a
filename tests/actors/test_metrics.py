"""The metrics of a run by hand, and that the Grafana dashboard asks for no other ones."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from monitoring.dashboard import dashboard as made
from raysim.actors import metrics
from raysim.engine.observer import ChunkReturned
from raysim.exchange.pool_protocol import Seat

MONITORING = Path(__file__).parents[2] / "monitoring"
ROW = {
    "round": 3,
    "accuracy": 0.75,
    "loss": math.nan,
    "seconds_train": 2.0,
    "seconds_aggregate": 0.5,
    "seconds_evaluate": 0.25,
    "bytes_down": 1000,
    "bytes_up": 400,
}


class Fake:
    """In the place of Ray's Gauge and Counter: keeps what it was told, under name and labels."""

    def __init__(self, told: dict[Any, Any], name: str, keys: tuple[str, ...]) -> None:
        self.told, self.name, self.keys, self.tags = told, name, keys, dict[str, str]()
        told.setdefault(name, {})

    def set_default_tags(self, tags: dict[str, str]) -> Fake:
        self.tags = tags
        return self

    def set(self, value: float, tags: dict[str, str] | None = None) -> None:
        labels = self.tags | (tags or {})
        assert set(labels) == set(self.keys)
        self.told[self.name][tuple(labels.values())] = value

    def inc(self, value: float) -> None:
        assert value > 0  # Ray refuses others
        key = tuple(self.tags.values())
        self.told[self.name][key] = self.told[self.name].get(key, 0) + value


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    kept: dict[Any, Any] = {}
    for kind in ("Gauge", "Counter"):
        monkeypatch.setattr(metrics, kind, lambda name, text, keys: Fake(kept, name, keys))
    return kept


def test_by_hand(told: dict[Any, Any]) -> None:
    observer = metrics.Metrics("run-1")
    seat = Seat(0, "n", 1, "cuda:0", 7000)
    observer.chunk_returned(ChunkReturned((1, 2, 3), (2,), 0.5, seat, sends=2))
    observer.chunk_returned(ChunkReturned((4,), (), 0.5, Seat(1, "n", 2, "cuda:0", 6000), sends=1))
    observer.round_finished(ROW)
    observer.round_finished(ROW | {"round": 4, "accuracy": math.nan, "bytes_down": 1})
    flat = {name: values.get(("run-1",)) for name, values in told.items()}
    assert flat["raysim_clients_done_total"] == 3 and flat["raysim_clients_failed_total"] == 1
    assert flat["raysim_clients_requeued_total"] == 3 and flat["raysim_gpu_memory_bytes"] == 7000
    assert flat["raysim_round"] == 4 and flat["raysim_accuracy"] == 0.75 and flat["raysim_loss"] is None
    assert flat["raysim_bytes_down_total"] == 1001 and flat["raysim_bytes_up_total"] == 800
    phases = {("run-1", "train"): 2.0, ("run-1", "aggregate"): 0.5, ("run-1", "evaluate"): 0.25}
    assert told["raysim_phase_seconds"] == phases


def test_the_dashboard_shows_every_metric_and_no_other(told: dict[Any, Any]) -> None:
    metrics.Metrics("run")
    dashboard = json.loads((MONITORING / "grafana.json").read_text())
    assert dashboard == made(), "python monitoring/dashboard.py writes it anew"
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    assert set(re.findall(r"ray_(raysim_\w+)", asked)) == set(told)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool (apt-get install prometheus)")
def test_prometheus_takes_the_configuration() -> None:
    command = ["promtool", "check", "config", str(MONITORING / "prometheus.yml")]
    assert subprocess.run(command, capture_output=True, check=False, timeout=300).returncode == 0
