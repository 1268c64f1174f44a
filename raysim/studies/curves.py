"""A study's runs as curves: one panel a column, one line a row, a measure against what the rounds up to it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import AfterValidator

from raysim.config.nearest import did_you_mean
from raysim.report.canvas import LIGHT, new_figure, picture_bytes
from raysim.results.costs import running_costs
from raysim.studies.entries import Entry, Measured, Png
from raysim.units import scale

if TYPE_CHECKING:
    from pandas import DataFrame

AGAINST = {
    "round": ("rounds", 1.0),
    "bytes": ("GB down and up", 1e-9),
    "bytes_up": ("MB from clients", 1e-6),
    "virtual_seconds": ("virtual minutes", 1 / 60),
    "joules": ("kJ", 1e-3),
}
"""Cost of rounds (:func:`raysim.results.costs.running_costs`, or what clients sent) → its axis' name and factor."""
WIDE = 20
"""Where the dearest row cost more than this many times the cheapest, the axis of costs is logarithmic."""
Runs = Mapping[tuple[str, str], Sequence["DataFrame"]]
"""(row, column) → the rounds tables of its finished cells, in the order of seeds."""


def _known_cost(against: str) -> str:
    if against not in AGAINST:
        raise ValueError(f"{against!r} is not allowed.{did_you_mean(against, AGAINST)} Allowed: {', '.join(AGAINST)}.")
    return against


class Curves(Entry):
    """A panel for each column of the study, in it a line for each row: ``curves`` of a study file."""

    path: Png
    measure: Measured
    against: Annotated[str, AfterValidator(_known_cost)]


def points(runs: Sequence[DataFrame], curves: Curves) -> DataFrame:
    """The mean over runs of cost and measure, for each round in which all measured it."""
    import pandas as pd

    found = [
        running_costs(run)
        .assign(value=run[curves.measure.column], bytes_up=run["bytes_up"].cumsum() if "bytes_up" in run else np.nan)
        .dropna(subset=["value"])
        .set_index("round", drop=False)
        for run in runs
    ]
    grouped = pd.concat(found).groupby(level=0)
    means = grouped[[curves.against, "value"]].mean()
    return means[grouped.size() == len(found)]


def draw(curves: Curves, runs: Runs, columns: Sequence[str], title: str) -> bytes:
    """The picture as PNG: the mean over seeds as a line, each seed's run faint behind it."""
    name, factor = AGAINST[curves.against]
    values = [run[curves.measure.column].max() for own in runs.values() for run in own]
    unit = scale(curves.measure.unit, values)
    figure = new_figure(figsize=(1.2 + 5.6 * len(columns), 4.0), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    for panel, column in zip(panels, columns, strict=True):
        costs = []
        for rank, row in enumerate(row for row, of in runs if of == column):
            color = LIGHT[rank % len(LIGHT)]
            for run in runs[row, column]:
                faint = points([run], curves)
                panel.plot(factor * faint[curves.against], unit.factor * faint["value"], color=color, alpha=0.3)
            mean = points(runs[row, column], curves)
            costs.append(mean[curves.against].max())
            line = "-" if rank < len(LIGHT) else "--"  # colors come a second time
            style = {"color": color, "linestyle": line, "marker": "osD^v<>p"[rank % 8], "markersize": 4}
            panel.plot(factor * mean[curves.against], unit.factor * mean["value"], label=row, linewidth=1.8, **style)
        panel.set(title=column if len(columns) > 1 else title, xlabel=name)
        if costs and min(costs) > 0 and max(costs) > WIDE * min(costs):
            panel.set_xscale("log")
            panel.xaxis.set_major_formatter("{x:g}")  # the usual one is in the markup of formulas
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(unit.heading(curves.measure.name.replace("_", " ")))
    if len(runs) > len(LIGHT) * len(columns):
        figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside right center", frameon=False)
    else:
        panels[-1].legend(frameon=False)
    return picture_bytes(figure)
