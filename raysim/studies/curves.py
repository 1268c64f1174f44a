"""A study's runs as curves: one panel a column, one line a row, a measure against what the rounds up to it cost.

The band around a line is the 95 % interval of the mean over seeds (Student's t), for each round by itself.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from raysim.comparison.differences import quantile
from raysim.config.nearest import did_you_mean
from raysim.report.canvas import LIGHT, new_figure
from raysim.results.costs import running_costs
from raysim.results.measures import WHOLE_RUNS, Measure
from raysim.studies.entries import Entry, Measured, PictureFile, mistake
from raysim.units import scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from pandas import DataFrame

    from raysim.errors import ConfigError

AGAINST = {
    "round": ("rounds", 1.0),
    "bytes": ("GB down and up", 1e-9),
    "bytes_up": ("MB from clients", 1e-6),
    "virtual_seconds": ("virtual minutes", 1 / 60),
    "joules": ("kJ", 1e-3),
}
"""Cost of rounds (:func:`raysim.results.costs.running_costs`, or what clients sent) → its axis' name and factor."""
DATES = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}
"""Kind of picture → its entry that would change with time or version."""
WIDE = 20
"""Where the dearest row cost more than this many times the cheapest, the axis of costs is logarithmic."""
INSIDE = 6
"""With more rows than these the legend stands beside the panels."""
Runs = Mapping[tuple[str, str], Sequence["DataFrame"]]
"""(row, column) → the rounds tables of its finished cells, in the order of seeds."""


def _known_cost(against: str) -> str:
    if against not in AGAINST:
        raise ValueError(f"{against!r} is not allowed.{did_you_mean(against, AGAINST)} Allowed: {', '.join(AGAINST)}.")
    return against


def _of_rounds(measure: Measure) -> Measure:
    if measure.how in WHOLE_RUNS:
        raise ValueError(f"{measure.name!r} is not allowed: it has one value a run. Allowed: a column of rounds.csv.")
    return measure


def _as_list(given: object) -> object:
    return [given] if isinstance(given, str) else given


class Curves(Entry):
    """A panel for each column of the study with a finished cell, a line for each row: ``curves`` of a study file."""

    path: Annotated[list[PictureFile], Field(min_length=1), BeforeValidator(_as_list)]
    """One file or several, each of the kind that its name ends in."""
    measure: Annotated[Measured, AfterValidator(_of_rounds)]
    against: Annotated[str, AfterValidator(_known_cost)]
    rows: Annotated[list[str], Field(default_factory=list)]
    """Rows that have a line; empty: all."""


def costs(run: DataFrame) -> DataFrame:
    """The costs of a run's rounds up to each one: those columns of :data:`AGAINST` that its table has."""
    found = running_costs(run)
    return found.assign(bytes_up=run["bytes_up"].cumsum()) if "bytes_up" in run else found


def points(runs: Sequence[DataFrame], curves: Curves, resampled: float = 0.0) -> DataFrame:
    """Mean over runs of cost and measure, for each round in which all measured it, and half the mean's 95 % interval.

    The interval of the measure alone, ``half``; NaN with one run.

    Args:
        resampled: test samples per training sample, where every run draws both anew from one pool
            (:mod:`raysim.comparison.differences`).
    """
    import pandas as pd

    found = [
        costs(run).assign(value=run[curves.measure.column]).dropna(subset=["value"]).set_index("round", drop=False)
        for run in runs
    ]
    grouped = pd.concat(found).groupby(level=0)
    means, count = grouped[[curves.against, "value"]].mean(), len(found)
    means["half"] = (quantile(count) if count > 1 else np.nan) * grouped["value"].std() * np.sqrt(1 / count + resampled)
    return means[grouped.size() == count]


def without_costs(file: Path, curves: Curves, place: str, there: Sequence[str]) -> ConfigError:
    """The error for a run that lacks the column against which it is to be drawn.

    Args:
        place: column and row of the run.
        there: the columns of costs that it has.
    """
    return mistake(
        file,
        f"curves: against: {curves.against}",
        f"{place} has no column {curves.against}. Against these it can be drawn: {', '.join(there)}. Choose one of "
        "them, leave the row out (rows), or set devices (devices.preset), with which a run has virtual_seconds and "
        "joules.",
    )


def draw(curves: Curves, runs: Runs, columns: Sequence[str], title: str, resampled: float = 0.0) -> Figure:
    """The picture: the mean over seeds as a line, in the band of its 95 % interval (:func:`points`)."""
    unit = scale(curves.measure.unit, [run[curves.measure.column].max() for own in runs.values() for run in own])
    drawn = [column for column in columns if any(of == column for _, of in runs)]
    ranks = {row: rank for rank, row in enumerate(dict.fromkeys(row for row, _ in runs))}
    figure = new_figure(figsize=(1.2 + 5.6 * len(drawn), 4.0), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(drawn), squeeze=False, sharey=True)[0]
    labels: dict[str, Line2D] = {}
    for panel, column in zip(panels, drawn, strict=True):
        lines = {row: points(own, curves, resampled) for (row, of), own in runs.items() if of == column}
        labels |= _panel(panel, lines, ranks, curves, unit.factor)
        panel.set(title=column if len(drawn) > 1 else title)
    panels[0].set_ylabel(unit.heading(curves.measure.column.replace("_", " ")))
    shown = [labels[row] for row in ranks], [*ranks]
    if len(ranks) > INSIDE:
        figure.legend(*shown, loc="outside right center", frameon=False)
    else:
        panels[-1].legend(*shown, frameon=False)
    return figure


def content_of(figure: Figure, path: Path) -> bytes:
    """The picture as the content of a file of this name: the same for the same figure."""
    import matplotlib

    kind = path.suffix.removeprefix(".")
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "raysim"}):
        figure.savefig(buffer, format=kind, metadata={DATES[kind]: None})
    return buffer.getvalue()


def _panel(
    panel: Axes, lines: Mapping[str, DataFrame], ranks: Mapping[str, int], curves: Curves, unit: float
) -> dict[str, Line2D]:
    """One panel; returns the line of each row.

    Args:
        ranks: row → its place among all, which gives it color and marker in every panel.
        unit: the factor of the values.
    """
    name, factor = AGAINST[curves.against]
    found: dict[str, Line2D] = {}
    for row, mean in lines.items():
        rank = ranks[row]
        costs, values, half = (mean[key].to_numpy() for key in (curves.against, "value", "half"))
        color = LIGHT[rank % len(LIGHT)]
        line = "-" if rank < len(LIGHT) else "--"  # colors come a second time
        style: dict[str, Any] = {"color": color, "linestyle": line, "marker": "osD^v<>p"[rank % 8], "markersize": 4}
        often = max(1, len(costs) // 10)
        [found[row]] = panel.plot(factor * costs, unit * values, linewidth=1.8, markevery=often, **style)
        panel.fill_between(
            factor * costs, unit * (values - half), unit * (values + half), color=color, alpha=0.18, lw=0
        )
    dearest = [mean[curves.against].max() for mean in lines.values()]
    if dearest and min(dearest) > 0 and max(dearest) > WIDE * min(dearest):
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter("{x:g}")  # the usual one is in the markup of formulas
    panel.set_xlabel(name)
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)
    return found
