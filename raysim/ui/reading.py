"""A run's folder as the parts of its page; each is made anew only when the files behind it have changed."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import columns
from raysim.monitor.run_view import live_status
from raysim.report.clients import Clients
from raysim.report.html import render, render_parts
from raysim.report.plots import COSTS, unit_of_costs
from raysim.report.run_page import of_config, of_files, of_rounds
from raysim.results.costs import running_costs
from raysim.storage.csv_table import TEXT_COLUMNS
from raysim.storage.folder_files import open_file
from raysim.storage.run_record import read_run_config, read_summary
from raysim.ui.live import live_part
from raysim.ui.tables import Tail, is_finite, thinned

if TYPE_CHECKING:
    from pandas import DataFrame

POINTS = 400
"""Points of one curve."""
BARS = 240
"""Clients whose accuracies are drawn."""
LOG_BYTES = 32 * 1024
LIVE_BLOCKS = ("head", "tiles", "current", "placement", "faults")
"""Parts of the template ``run.html`` that are drawn at each look; the others when their files have changed."""
FILES = ("config.yaml", "environment.json", "partition.csv", "devices.png", "profile.csv", "summary.json")

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
        self._lost: dict[str, int] = {}
        charts = {name: chart.title for name, chart in columns.CHARTS.items()}
        self.content: dict[str, Any] = {"charts": charts, "curves": None, "costs": None, "further": [], "log": ""}
        """The variables of the template."""
        self.parts: dict[str, Part] = {}
        """Parts of the page by name, and ``charts``: replaced as a whole, so that other threads may read it."""
        self._looks: dict[str, int] = {}
        """Part → the look since which it is as it is; replaced as a whole, after ``parts``."""

    def page(self) -> str:
        """The whole page as it was at the last look."""
        return render("run.html", self.content).decode()

    def refresh(self) -> dict[str, Part]:
        """Look at the folder; all parts, of which those that have not changed are as they were."""
        before = dict(self._stamps)
        try:
            return self._refresh()
        except BaseException:
            self._stamps = before  # what this look has not shown, the next one reads again
            raise

    def _refresh(self) -> dict[str, Part]:
        content, blocks = dict(self.content), list(LIVE_BLOCKS)
        live = live_status(self.folder)
        charts = self.parts.get("charts", {"list": _charts(), "series": {}, "costs": {}})
        if self._moved("rounds.csv") or not self.parts:
            again, rows = self._rounds.read()
            self._rows = rows if again else self._rows + rows
            frame = _frame(self._rows)
            content |= of_rounds(frame)
            blocks += ["costs", "rounds"]
            series = _series(self._rows)
            charts = charts | {"series": charts["series"] | series, "costs": _costs(frame, _drawn_rounds(series))}
        # Who was lost stands in the status, so that a client with nothing but failures is shown too.
        if self._moved("clients.csv") or live.get("lost", {}) != self._lost or not self.parts:
            self._lost = live.get("lost", {})
            again, rows = self._clients.read()
            if again:
                self._known.clear()
            self._known.add(rows)
            blocks.append("clients")
            content["clients"] = view = self._known.view(self._lost)
            ordered = enumerate(view["spread"] if view else (), 1)
            spread = thinned([(place, value) for place, value in ordered if is_finite(value)], BARS)
            charts = charts | {"series": charts["series"] | {"spread": spread if len(spread) > 1 else []}}
        moved = [name for name in FILES if self._moved(name)]
        if "config.yaml" in moved and self.parts and (self.folder / "config.yaml").exists():  # resumed with others
            self._config = read_run_config(self.folder)
        if moved or not self.parts:
            summary = read_summary(self.folder)
            blocks += ["again", "partition", "files"]
            content |= of_config(self.folder, self._config, summary) | of_files(self.folder, summary)
        if self._moved("run.log") or not self.parts:
            blocks.append("log")
            content["log"] = self._log()
        known = (row.get("seconds_round") for row in self._rows)
        seconds = [spent if is_finite(spent) else 0.0 for spent in known]
        inline = self._config.get("engine", {}).get("backend") == "inline"
        content["live"] = live_part(live, seconds, self.folder.name, inline)
        self.content = content
        drawn = render_parts("run.html", content, blocks)
        self._show({name: {"html": html} for name, html in drawn.items()} | {"charts": charts})
        return self.parts

    def newer(self, look: int) -> dict[str, Any]:
        """``parts`` that changed after a look, and the number of the newest ``look``; 0 has all."""
        looks = self._looks  # before the parts: one that is newer than its look is sent twice, and never missed
        parts = self.parts
        return {
            "look": max(looks.values(), default=0),
            "parts": {name: parts[name] for name, changed in looks.items() if changed > look},
        }

    def broken(self, message: str) -> None:
        """Say in the parts that the folder can no longer be read."""
        live = self.content.get("live", {}) | {"state": "unknown", "word": "not finished", "banner": message}
        self.content = self.content | {"live": live}
        if "title" in self.content:
            self._show({"head": {"html": render_parts("run.html", self.content, ["head"])["head"]}})

    def _show(self, drawn: dict[str, Part]) -> None:
        """Replace parts; those that changed get the number of this look.

        That is a time, in milliseconds since 1970, so that a page which outlives its server goes on with the next one.
        """
        look = max(time.time_ns() // 1_000_000, max(self._looks.values(), default=0) + 1)
        changed = [name for name, part in drawn.items() if part != self.parts.get(name)]
        self.parts = self.parts | drawn
        self._looks = self._looks | dict.fromkeys(changed, look)

    def _moved(self, name: str) -> bool:
        try:
            found = (self.folder / name).lstat()
            stamp = (found.st_mtime, found.st_size)
        except FileNotFoundError:
            stamp = (0.0, -1)
        moved = self._stamps.get(name) != stamp
        self._stamps[name] = stamp
        return moved

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


def _frame(rows: list[dict[str, Any]]) -> DataFrame:
    """The table of rounds that the report has too."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    return frame.astype({name: float for name in frame.columns if name not in TEXT_COLUMNS})


def _series(rows: list[dict[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """The curves of all charts: column → rounds and values."""
    return {
        name: thinned([(row["round"], row[name]) for row in rows if is_finite(row.get(name))], POINTS)
        for name, _ in columns.shown("chart")
    }


def _drawn_rounds(series: Mapping[str, Sequence[tuple[float, float]]]) -> set[float]:
    """The rounds of all points that can be drawn against costs."""
    against = [curve for name, chart in columns.CHARTS.items() if chart.costs for curve in columns.curves(name)]
    return {number for curve in against for number, _ in series[curve]}


def _costs(rounds: DataFrame, drawn: Collection[float]) -> dict[str, Part]:
    """The costs in the units of the report, of the rounds that are drawn: cost → ``label`` and ``points``."""
    if "round" not in rounds:
        return {}
    known = running_costs(rounds)
    found = {}
    for name in COSTS:
        costs = known[["round", name]].dropna() if name in known else known.head(0)
        if len(costs):
            factor, label = unit_of_costs(name, [rounds])
            every = ((number, value / factor) for number, value in costs.itertuples(index=False))
            points = [(number, value) for number, value in every if number in drawn and is_finite(value)]
            found[name] = {"label": label, "points": points}
    return found


def _charts() -> list[Part]:
    """The charts that the page draws, and their curves."""
    drawn = [
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
    spread = {"series": [{"name": "spread", "label": "accuracy"}], "bars": True, "log": False, "percent": True}
    return [
        *drawn,
        {"name": "spread", **spread, "range": [0, 1.05], "costs": False, "title": "client %{x} from the worst"},
    ]
