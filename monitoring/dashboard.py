"""The Grafana dashboard, made from the columns of a run's tables and the counters of client tasks.

``python monitoring/dashboard.py`` writes ``grafana.json`` beside this file. A test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raysim import columns
from raysim.columns import CHARTS, Chart, Column
from raysim.units import Unit

TARGET = Path(__file__).parent / "grafana.json"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_RUN = '{run=~"$run"}'
_UNITS: dict[Unit, str] = {"percent": "percentunit", "bytes": "bytes", "seconds": "s"}
_TASKS = {"done": "done", "failed": "failed", "requeued": "sent again"}
_MEANINGS = {
    "failed": "Failed and left out of their round (engine.on_client_error skip).",
    "requeued": "Sent again because the actor that held them died.",
}
Targets = Sequence[tuple[str, str]]
"""Expression and legend of each series."""


def dashboard() -> dict[str, Any]:
    """The whole dashboard, as Grafana imports it."""
    gauges = [(name, column) for name, column in columns.shown("metric") if column.metric == "gauge"]
    stats = [_stat_of(name, column) for name, column in gauges if column.tiles]
    tasks = [
        _stat(f"Client tasks {word}", f"sum({_tasks(name)}){_or_zero(name)}", "none", _MEANINGS.get(name, ""))
        for name, word in _TASKS.items()
    ]
    rates = [(f"sum(rate({_tasks(name)}[$__rate_interval])){_or_zero(name)}", word) for name, word in _TASKS.items()]
    traffic = [
        (f"sum(rate(ray_raysim_{name}_total{_RUN}[$__rate_interval]))", columns.title_of(name).replace("bytes ", ""))
        for name, column in columns.shown("metric")
        if column.metric == "counter"
    ]
    memory = [(f"ray_raysim_gpu_memory_bytes{_RUN}", "{{run}}")]
    rows = [
        [*stats, *tasks],
        *(
            [_chart_of(name, chart) for name, chart in list(CHARTS.items())[at : at + 2]]
            for at in range(0, len(CHARTS), 2)
        ),
        [
            _series("Clients per second", rates, "none", {"min": 0}),
            _series("Bytes per second", traffic, "Bps", {"min": 0}),
            _series("GPU memory of the fullest client actor", memory, "bytes", {"min": 0}, help="0 on CPU."),
        ],
        [
            _series(
                "CPU of the nodes",
                [("avg by (instance) (ray_node_cpu_utilization)", "{{instance}}")],
                "percent",
                {"min": 0, "max": 100},
            ),
            _series(
                "Object store",
                [("sum by (Location) (ray_object_store_memory)", "{{Location}}")],
                "bytes",
                {"min": 0},
                stacked=True,
            ),
            _series("Actors", [("sum by (State) (ray_actors > 0)", "{{State}}")], "none", {"min": 0}, stacked=True),
        ],
    ]
    return _FRAME | {"panels": _placed(rows)}


def _stat_of(name: str, column: Column) -> dict[str, Any]:
    """The last value of a column, the best of all chosen runs."""
    title = columns.title_of(name)
    function = "min" if column.best == "smallest" else "max"
    return _stat(title.capitalize(), f"{function}(ray_raysim_{name}{_RUN})", _UNITS.get(column.unit, "none"))


def _chart_of(name: str, chart: Chart) -> dict[str, Any]:
    """A chart of a run's page, with those of its curves that are metrics."""
    curves = columns.curves(name)
    targets = [
        (f"ray_raysim_{curve}{_RUN}", f"{columns.label_of(curve)}, {{{{run}}}}")
        for curve, column in curves.items()
        if column.metric == "gauge"
    ]
    if any(column.metric == "phase" for column in curves.values()):
        targets.append((f"sum by (phase) (ray_raysim_phase_seconds{_RUN})", "{{phase}}"))
    bounds = {"min": 0, "max": 1} if chart.unit == "percent" else {"min": 0} if chart.stacked else {}
    return _series(chart.title, targets, _UNITS.get(chart.unit, "none"), bounds, stacked=chart.stacked)


def _tasks(name: str) -> str:
    return f"ray_raysim_clients_{name}_total{_RUN}"


def _or_zero(name: str) -> str:
    """A counter of what never happened is absent."""
    return "" if name == "done" else " or on() vector(0)"


def _stat(title: str, expression: str, unit: str, help: str = "") -> dict[str, Any]:
    """One number."""
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "colorMode": "none",
        "graphMode": "none",
        "textMode": "value",
    }
    return _panel("stat", title, [(expression, "{{run}}")], {"unit": unit}, options, help)


def _series(
    title: str, targets: Targets, unit: str, bounds: dict[str, int], *, stacked: bool = False, help: str = ""
) -> dict[str, Any]:
    """Curves over time."""
    custom: dict[str, Any] = {"lineWidth": 2, "fillOpacity": 0, "showPoints": "never", "spanNulls": True}
    if stacked:
        custom |= {"fillOpacity": 25, "stacking": {"mode": "normal", "group": "A"}}
    options = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    return _panel("timeseries", title, targets, {"unit": unit, **bounds, "custom": custom}, options, help)


def _panel(
    kind: str, title: str, targets: Targets, defaults: dict[str, Any], options: dict[str, Any], help: str
) -> dict[str, Any]:
    asked = [
        {"datasource": _SOURCE, "expr": expression, "legendFormat": legend, "refId": chr(ord("A") + place)}
        for place, (expression, legend) in enumerate(targets)
    ]
    config = {"defaults": defaults, "overrides": []}
    panel = {"type": kind, "title": title, "datasource": _SOURCE, "fieldConfig": config, "options": options}
    return {**panel, "targets": asked, **({"description": help} if help else {})}


def _placed(rows: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """All panels with their numbers and places on a grid of 24 columns, each row as wide as the grid."""
    placed: list[dict[str, Any]] = []
    y = 0
    for row in rows:
        width, height = 24 // len(row), 4 if row[0]["type"] == "stat" else 8
        for at, panel in enumerate(row):
            place = {"x": at * width, "y": y, "w": width, "h": height}
            placed.append({"id": len(placed) + 1, **panel, "gridPos": place})
        y += height
    return placed


_FRAME: dict[str, Any] = {
    "title": "raysim",
    "uid": "raysim",
    "tags": ["raysim", "ray"],
    "schemaVersion": 39,
    "version": 1,
    "editable": True,
    "refresh": "10s",
    "time": {"from": "now-30m", "to": "now"},
    "timezone": "browser",
    "annotations": {"list": []},
    "links": [],
    "templating": {
        "list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus", "hide": 0},
            {
                "name": "run",
                "type": "query",
                "label": "run",
                "datasource": {"type": "prometheus", "uid": "${datasource}"},
                "definition": "label_values(ray_raysim_round, run)",
                "query": {"query": "label_values(ray_raysim_round, run)", "refId": "run"},
                "refresh": 2,
                "includeAll": True,
                "multi": True,
                "allValue": ".+",
                "sort": 1,
                "current": {"text": "All", "value": "$__all"},
            },
        ]
    },
}
"""All but the panels."""


if __name__ == "__main__":
    TARGET.write_text(json.dumps(dashboard(), indent=1) + "\n", encoding="utf-8")
