"""A run and its replay side by side: both curves, and the differences by client, on one page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.comparison.differences import NOT_FINITE, Difference, paired
from raysim.comparison.runs import compare
from raysim.report import compare as report_page
from raysim.report.figures import text_of
from raysim.report.html import Cell, Number, Table
from raysim.results.result import load_result
from raysim.units import Unit, counted

if TYPE_CHECKING:
    from pandas import DataFrame

PAGE = "replay.html"
_UNITS: Mapping[str, Unit] = {"accuracy": "percent", "loss": "plain", "train_loss": "plain"}
"""Columns of the clients table by which clients are compared: the first that both runs have."""


@dataclass(frozen=True)
class ClientRow:
    """One client's last value in both runs; None where it was not judged."""

    client: int
    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Comparison:
    """The differences between a run and its replay."""

    measures: Mapping[str, tuple[float, float]]
    """Column of the rounds table → its last value in the run and in the replay."""
    column: str
    """The column of the clients table that clients are compared by; empty: none."""
    clients: tuple[ClientRow, ...]
    mean: Difference | None
    """The mean over clients of replay less run, with its interval; None where no client is in both."""

    def plain(self) -> dict[str, Any]:
        """The comparison as JSON has it."""
        measures = {
            name: {"run": before, "replay": after, "difference": after - before}
            for name, (before, after) in self.measures.items()
        }
        rows = [
            {"client": row.client, "name": row.name, "run": row.before, "replay": row.after} for row in self.clients
        ]
        mean = None if self.mean is None else {"mean": self.mean.mean, "low": self.mean.low, "high": self.mean.high}
        return {"measures": measures, "clients_by": self.column, "clients": rows, "mean_difference": mean}

    def text(self) -> list[str]:
        """The lines that are printed."""
        lines = [
            f"{name}: {before:.4f}, replayed {after:.4f} ({after - before:+.4f})"
            for name, (before, after) in self.measures.items()
        ]
        if self.mean is not None:
            lines.append(f"{self.column} of clients: {self._mean_text()}")
        return lines

    def table(self) -> Table:
        """The differences by client, for the page."""
        unit = _UNITS[self.column]
        rows: list[list[Cell]] = [
            [
                str(row.client),
                row.name,
                *(_cell(unit, value) for value in (row.before, row.after, _difference(row))),
            ]
            for row in sorted(self.clients, key=_order)
        ]
        return Table(["client", "name", f"{self.column} in the run", "replayed", "difference"], rows)

    def _mean_text(self) -> str:
        assert self.mean is not None
        if math.isnan(self.mean.mean):
            return f"the mean difference {NOT_FINITE}"
        interval = f" [{self.mean.low:+.4f}, {self.mean.high:+.4f}]" if self.mean.low is not None else ""
        return f"{self.mean.mean:+.4f}{interval} in the mean of {counted(self.mean.seeds, 'client')}"


def compare_runs(folder: Path, replayed: Path) -> Comparison:
    """Compare a run with its replay by what both tables say last."""
    before, after = load_result(folder), load_result(replayed)
    measures = {
        name: (float(first.iloc[-1]), float(second.iloc[-1]))
        for name in ("accuracy", "loss")
        if name in before.rounds and name in after.rounds
        if len(first := before.rounds[name].dropna()) and len(second := after.rounds[name].dropna())
    }
    frames = (before.clients, after.clients)
    column = next((name for name in _UNITS if all(name in frame and frame[name].any() for frame in frames)), "")
    if not column:
        return Comparison(measures, "", (), None)
    values, others = (_last(frame, column) for frame in frames)
    numbers: list[int] = before.clients["client"].tolist()
    names = dict(zip(numbers, map(str, before.clients["name"]), strict=True))
    # A client that takes no part any more has a last value of an earlier round, which is none to compare.
    both = {client: value for client, (number, value) in others.items() if values.get(client, (0, 0))[0] == number}
    known = {client: value for client, (_, value) in values.items()}
    rows = tuple(ClientRow(client, names[client], known.get(client), both.get(client)) for client in sorted(names))
    return Comparison(measures, column, rows, paired(both, known))


def write_page(folder: Path, replayed: Path, comparison: Comparison) -> Path:
    """Write the page into the replay's folder; its path."""
    differences = comparison.table() if comparison.clients else None
    return report_page.write_page(compare([folder, replayed]), replayed / PAGE, differences)


def _last(clients: DataFrame, column: str) -> dict[int, tuple[int, float]]:
    """The round and the value that every client has last in a column."""
    known = clients.dropna(subset=[column])
    numbers: list[int] = known["client"].tolist()
    values = zip(map(int, known["round"]), map(float, known[column]), strict=True)
    return dict(zip(numbers, values, strict=True))  # later rounds replace earlier ones


def _difference(row: ClientRow) -> float | None:
    return None if row.before is None or row.after is None else row.after - row.before


def _order(row: ClientRow) -> tuple[float, int]:
    """Largest differences first, then clients that are in one run alone."""
    difference = _difference(row)
    return (math.inf if difference is None else -abs(difference), row.client)


def _cell(unit: Unit, value: float | None) -> Cell:
    return "–" if value is None else Number(text_of(unit, value), value)
