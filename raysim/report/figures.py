"""The figures that sum a run up, and how a page writes numbers: each in its unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from raysim import units
from raysim.config.privacy import NEIGHBORS
from raysim.report.measures import COLUMNS
from raysim.results.result import RunResult
from raysim.units import Unit


@dataclass(frozen=True)
class Figure:
    """One number of a run."""

    name: str
    unit: Unit
    value: float


def figures(result: RunResult) -> list[Figure]:
    """The figures that matter, from the table of rounds; what is not known is left out."""
    rounds = result.rounds

    def last(column: str) -> float:
        found = rounds[column].dropna().tolist() if column in rounds else []
        return float(found[-1]) if found else math.nan

    def total(column: str) -> float:
        return float(rounds[column].sum()) if column in rounds else 0.0

    found = [
        Figure("accuracy", "percent", last("accuracy")),
        Figure("best accuracy", "percent", float(rounds["accuracy"].max()) if "accuracy" in rounds else math.nan),
        Figure("balanced accuracy", "percent", last("balanced_accuracy")),
        Figure("loss", "plain", last("loss")),
        Figure("mean of clients", "percent", last("client_accuracy_mean")),
        Figure("std over clients", "percent", last("client_accuracy_std")),
        Figure("worst 10 % of clients", "percent", last("client_accuracy_worst_decile")),
        *_privacy(result),
        Figure("rounds", "count", float(len(rounds))),
        Figure("local epochs", "count", last("epochs_total")),
        Figure("sent and received", "bytes", total("bytes_down") + total("bytes_up") or math.nan),
        Figure("time of rounds", "seconds", total("seconds_round") if "seconds_round" in rounds else math.nan),
    ]
    return [figure for figure in found if not math.isnan(figure.value)]


def _privacy(result: RunResult) -> list[Figure]:
    """The last ε, whose name says what it is about."""
    rounds = result.rounds
    if "epsilon" not in rounds or rounds.empty:
        return []
    about = f" ({rounds[NEIGHBORS].iloc[-1]})" if NEIGHBORS in rounds else ""  # earlier versions wrote no words
    return [Figure(f"ε{about}", "plain", float(rounds["epsilon"].iloc[-1]))]


def text_of(unit: Unit, value: float) -> str:
    """One number with its unit."""
    if math.isnan(value):
        return "–"
    if unit == "percent":
        return units.percent(value, units.THIN)
    if unit == "bytes":
        return units.byte_count(value, units.THIN)
    return f"{units.number(value)}{units.THIN}s" if unit == "seconds" else units.number(value)


def cell(column: str, value: Any) -> str:
    """A value of a table of rounds or clients as text."""
    if value is None:
        return "–"
    if isinstance(value, (str, bool)):
        return str(value)
    if column in COLUMNS:
        return text_of(COLUMNS[column].unit, float(value))
    return text_of(
        "bytes" if column == "bytes" else "seconds" if column.startswith("seconds") else "plain", float(value)
    )
