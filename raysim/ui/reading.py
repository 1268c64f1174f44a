"""A run's folder as the parts of the page; each is made anew only when the files behind it have changed."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

from raysim import columns, units
from raysim.monitor.run_view import live_status
from raysim.report.settings_line import settings_line
from raysim.storage.folder_files import open_file
from raysim.storage.run_record import read_run_config, read_summary, run_title
from raysim.ui.clients import Clients
from raysim.ui.tables import Tail, thinned

POINTS = 400
"""Points of one curve."""
LOG_BYTES = 32 * 1024
Part = dict[str, Any]


class Reading:
    """The run in a folder, finished or not.

    Raises:
        ResultsError: the folder holds no run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._config = read_run_config(folder)
        self._rounds, self._clients = Tail(folder / "rounds.csv"), Tail(folder / "clients.csv", ("round", "client"))
        self._rows: list[dict[str, Any]] = []
        self._known = Clients()
        self._stamps: dict[str, tuple[float, int]] = {}
        self.parts: dict[str, Part] = {"charts": {"list": _charts()}}
        """What the last look at the folder gave; replaced as a whole, so that other threads may read it."""

    def refresh(self) -> dict[str, Part]:
        """Look at the folder; all parts, of which those that have not changed are as they were."""
        changed: dict[str, Part] = {}
        live = live_status(self.folder)
        if self._moved("rounds.csv"):
            again, rows = self._rounds.read()
            self._rows = rows if again else self._rows + rows
            changed["rounds"] = self._rounds_part()
        # Who was lost stands in the status, so that a client with nothing but failures is shown too.
        lost_changed = live.get("lost", {}) != self.parts.get("run", {}).get("lost", {})
        if self._moved("clients.csv") or lost_changed:
            again, rows = self._clients.read()
            if again:
                self._known.clear()
            self._known.add(rows)
            changed["clients"] = self._known.view(live.get("lost", {}))
        if self._moved("run.log"):
            changed["log"] = {"text": self._log()}
        self.parts = self.parts | changed | {"run": self._run_part(live)}
        return self.parts

    def broken(self, message: str) -> None:
        """Say in the parts that the folder can no longer be read."""
        run = self.parts.get("run", {}) | {"state": "unknown", "message": message}
        self.parts = self.parts | {"run": run}

    def _moved(self, name: str) -> bool:
        try:
            found = (self.folder / name).lstat()
            stamp = (found.st_mtime, found.st_size)
        except FileNotFoundError:
            stamp = (0.0, -1)
        moved = self._stamps.get(name) != stamp
        self._stamps[name] = stamp
        return moved

    def _run_part(self, live: dict[str, Any]) -> Part:
        summary = read_summary(self.folder)
        slots = [slot | {"memory": units.byte_count(slot.get("gpu_bytes", 0))} for slot in live.get("slots", [])]
        return live | {
            "slots": slots,
            "title": run_title(self._config, summary),
            "folder": self.folder.name,
            "line": settings_line(self._config, summary),
            "backend": self._config.get("engine", {}).get("backend", ""),
        }

    def _rounds_part(self) -> Part:
        rows = self._rows
        series = {}
        for name, _ in columns.shown("chart"):
            points = [(row["round"], row[name]) for row in rows if row.get(name) is not None]
            series[name] = thinned(points, POINTS)
        bytes_so_far = accumulate((row.get("bytes_down") or 0) + (row.get("bytes_up") or 0) for row in rows)
        clock = [
            (row["round"], row["virtual_seconds"] / 3600) for row in rows if row.get("virtual_seconds") is not None
        ]
        costs = {"bytes": dict(zip([row["round"] for row in rows], bytes_so_far, strict=True)), "hours": dict(clock)}
        drawn = {number for points in series.values() for number, _ in points}
        last: dict[str, Any] = {}
        for row in rows[-200:]:
            last |= {name: value for name, value in row.items() if value is not None}
        accuracies = [row["accuracy"] for row in rows if row.get("accuracy") is not None]
        totals = {name: sum(row.get(name) or 0 for row in rows) for name in ("bytes_down", "bytes_up", "seconds_round")}
        recent = [row["seconds_round"] / row["local_epochs"] for row in rows[-50:] if row.get("local_epochs")]
        return {
            "count": len(rows),
            "series": series,
            "costs": {name: [pair for pair in own.items() if pair[0] in drawn] for name, own in costs.items()},
            "last": last,
            "best_accuracy": max(accuracies, default=None),
            "totals": totals,
            "traffic": units.byte_count(totals["bytes_down"] + totals["bytes_up"], units.THIN),
            "seconds_per_epoch": sorted(recent)[len(recent) // 2] if recent else None,
        }

    def _log(self) -> str:
        path = self.folder / "run.log"
        try:
            with open_file(path) as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - LOG_BYTES))
                text = file.readall().decode("utf-8", errors="replace")
        except OSError:
            return ""
        return text if size <= LOG_BYTES else text.partition("\n")[2]


def _charts() -> list[Part]:
    """The charts that the page draws, and their curves."""
    return [
        {
            "name": name,
            "series": [{"name": curve, "label": columns.label_of(curve)} for curve in columns.curves(name)],
            "bars": chart.stacked,
            "log": chart.unit == "plain",
            "percent": chart.unit == "percent",
            "range": [0, 1.05] if chart.whole else None,
            "costs": chart.costs,
        }
        for name, chart in columns.CHARTS.items()
    ]
