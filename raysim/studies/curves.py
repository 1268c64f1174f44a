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
from raysim.studies.entries import Entry, Measured, PictureFile
from raysim.units import scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

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
    """A panel for each column of the study, in it a line for each row: ``curves`` of a study file."""

    path: Annotated[list[PictureFile], Field(min_length=1), BeforeValidator(_as_list)]
    """One file or several, each of the kind that its name ends in."""
    measure: Annotated[Measured, AfterValidator(_of_rounds)]
    against: Annotated[str, AfterValidator(_known_cost)]


def points(runs: Sequence[DataFrame], curves: Curves) -> DataFrame:
    """Mean over runs of cost and measure, for each round in which all measured it, and half the mean's 95 % interval.

    The interval of the measure alone, ``half``; NaN with one run.
    """
    import pandas as pd

    found = [
        running_costs(run)
        .assign(value=run[curves.measure.column], bytes_up=run["bytes_up"].cumsum() if "bytes_up" in run else np.nan)
        .dropna(subset=["value"])
        .set_index("round", drop=False)
        for run in runs
    ]
    grouped = pd.concat(found).groupby(level=0)
    means, count = grouped[[curves.against, "value"]].mean(), len(found)
    means["half"] = (quantile(count) if count > 1 else np.nan) * grouped["value"].std() / np.sqrt(count)
    return means[grouped.size() == count]


def draw(curves: Curves, runs: Runs, columns: Sequence[str], title: str) -> Figure:
    """The picture: the mean over seeds as a line, in the band of its 95 % interval."""
    unit = scale(curves.measure.unit, [run[curves.measure.column].max() for own in runs.values() for run in own])
    figure = new_figure(figsize=(1.2 + 5.6 * len(columns), 4.0), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    for panel, column in zip(panels, columns, strict=True):
        lines = {row: points(own, curves) for (row, of), own in runs.items() if of == column}
        _panel(panel, lines, curves, unit.factor)
        panel.set(title=column if len(columns) > 1 else title)
    panels[0].set_ylabel(unit.heading(curves.measure.name.replace("_", " ")))
    if len(runs) > len(LIGHT) * len(columns):
        figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside right center", frameon=False)
    else:
        panels[-1].legend(frameon=False)
    return figure


def content_of(figure: Figure, path: Path) -> bytes:
    """The picture as the content of a file of this name: the same for the same figure."""
    import matplotlib

    kind = path.suffix.removeprefix(".")
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "raysim"}):
        figure.savefig(buffer, format=kind, metadata={DATES[kind]: None})
    return buffer.getvalue()


def _panel(panel: Axes, lines: Mapping[str, DataFrame], curves: Curves, unit: float) -> None:
    """One panel; ``unit`` is the factor of its values."""
    name, factor = AGAINST[curves.against]
    for rank, (row, mean) in enumerate(lines.items()):
        costs, values, half = (mean[key].to_numpy() for key in (curves.against, "value", "half"))
        color = LIGHT[rank % len(LIGHT)]
        line = "-" if rank < len(LIGHT) else "--"  # colors come a second time
        style: dict[str, Any] = {"color": color, "linestyle": line, "marker": "osD^v<>p"[rank % 8], "markersize": 4}
        panel.plot(factor * costs, unit * values, label=row, linewidth=1.8, markevery=max(1, len(costs) // 10), **style)
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
